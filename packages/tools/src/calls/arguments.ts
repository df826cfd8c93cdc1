/**
 * How a tool declares its arguments. Any schema library fits; the tools that run commands are parsed by hand, because
 * loading a library takes longer than a small command.
 */

/** The part of a schema that dispatch needs, in the standard form of schema libraries. */
export interface ArgumentSchema<A> {
  readonly "~standard": {
    validate(
      value: unknown,
    ):
      | { readonly value: A; readonly issues?: undefined }
      | { readonly issues: readonly ArgumentIssue[] }
      | Promise<unknown>;
  };
}

interface ArgumentIssue {
  readonly message: string;
  readonly path?: readonly unknown[] | undefined;
}

interface Field {
  readonly type: "string" | "number" | "boolean";
  readonly isRequired?: true;
  readonly description?: string;
  readonly check?: (value: never) => string | undefined;
}

/** An object with these fields; others that models send are kept. */
export function byHand<A>(fields: { readonly [K in keyof A & string]?: Field }): {
  readonly input: ArgumentSchema<A>;
  readonly parameters: Readonly<Record<string, unknown>>;
} {
  const entries = Object.entries<Field | undefined>(fields).flatMap(([name, field]) =>
    field === undefined ? [] : [{ name, ...field }],
  );
  const validate: ArgumentSchema<A>["~standard"]["validate"] = (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return { issues: [{ message: expected("object", value) }] };
    }
    const issues = entries.flatMap((field) => {
      const message = wrongWith(field, Reflect.get(value, field.name));
      return message === undefined ? [] : [{ message, path: [field.name] }];
    });
    // All fields have been checked.
    return issues.length === 0 ? { value: value as A } : { issues };
  };
  const properties = entries.map(({ name, type, description }) => [
    name,
    { type, ...(description === undefined ? {} : { description }) },
  ]);
  const required = entries.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  return {
    input: { "~standard": { validate } },
    parameters: { type: "object", properties: Object.fromEntries(properties), required },
  };
}

function wrongWith({ type, isRequired, check }: Field, value: unknown): string | undefined {
  if (value === undefined && isRequired === undefined) return undefined;
  if (typeof value !== type || Number.isNaN(value)) return expected(type, value);
  return check?.(value as never);
}

function expected(type: string, value: unknown): string {
  const received = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return `Invalid input: expected ${type}, received ${received}`;
}

export function positive(value: number): string | undefined {
  return value > 0 ? undefined : "Too small: expected number to be >0";
}
