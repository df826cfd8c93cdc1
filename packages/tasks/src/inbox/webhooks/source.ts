/** Programs elsewhere that may send orders, each under a name, with its own secret and its own way of saying things. */

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Inbound {
  /** Names are lower case. */
  readonly headers: Headers;
  /** As received: signatures are over bytes. */
  readonly body: Buffer;
}

export interface WebhookSource {
  readonly name: string;
  readonly kind: "generic" | "github";
  /** Signs bodies. Without one, only requests with a token are accepted. */
  readonly secret?: string | undefined;
  readonly workspace?: string | undefined;
  /** By repository, `owner/name`. */
  readonly workspaces?: Readonly<Record<string, string>> | undefined;
  /** The label that makes an issue an order. */
  readonly label?: string | undefined;
  /** The beginning of a comment that is an order. */
  readonly command?: string | undefined;
}

/** An order, or why it is not one. */
export type Parsed =
  | {
      readonly kind: "order";
      readonly fields: Readonly<Record<string, unknown>>;
      /** Of this order alone; the same again is the same task. */
      readonly id?: string;
      readonly workspace?: string | undefined;
      readonly ref?: string;
    }
  | { readonly kind: "ignored"; readonly reason: string };

/** `isSigned`: signed with the secret of the source, and not long ago where the signature has a time. */
export interface Parser {
  isSigned(inbound: Inbound, secret: string, now: number): boolean;
  parse(inbound: Inbound, source: WebhookSource): Parsed;
}

export function ignored(reason: string): Parsed {
  return { kind: "ignored", reason };
}

export function header({ headers }: Inbound, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : value?.[0];
}

export function table(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
