/** Names of params in a JSON Schema: `limit`, `gitInfo.sha`, `input[].text`, whatever variant they belong to. */
export interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema | true>>;
  readonly items?: Schema | boolean;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

export type Definitions = Readonly<Record<string, Schema>>;

export function paramNames(schema: Schema, definitions: Definitions): readonly string[] {
  const names = new Set<string>();
  visit(schema, "", []);
  return [...names].toSorted();

  function visit({ $ref, properties = {}, items, ...unions }: Schema, prefix: string, within: readonly string[]): void {
    const name = $ref?.split("/").at(-1) ?? "";
    const target = definitions[name];
    if (target !== undefined && !within.includes(name)) visit(target, prefix, [...within, name]);
    for (const part of [unions.oneOf, unions.anyOf, unions.allOf].flatMap((one) => one ?? []))
      visit(part, prefix, within);
    if (typeof items === "object") visit(items, `${prefix}[]`, within);
    for (const [field, inner] of Object.entries(properties)) {
      const here = prefix === "" ? field : `${prefix}.${field}`;
      names.add(here);
      if (typeof inner === "object") visit(inner, here, within);
    }
  }
}
