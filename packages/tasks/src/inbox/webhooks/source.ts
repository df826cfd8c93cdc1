/** Programs elsewhere that may send orders, each under a name, with its own secret and its own way of saying things. */

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Inbound {
  /** Names in lower case. */
  readonly headers: Headers;
  /** As it came: signatures are over bytes. */
  readonly body: Buffer;
}

export interface WebhookSource {
  readonly name: string;
  readonly kind: "generic" | "github";
  /** Bodies are signed with it. Without one, only requests that have shown a token are heard. */
  readonly secret?: string | undefined;
  /** For orders that name none. */
  readonly workspace?: string | undefined;
  /** By repository, `owner/name`. */
  readonly workspaces?: Readonly<Record<string, string>> | undefined;
  /** Of an issue: the label that makes it an order. */
  readonly label?: string | undefined;
  /** How a comment begins that is one. */
  readonly command?: string | undefined;
}

/** What a parser makes of a request: an order, or why it is none. */
export type Parsed =
  | {
      readonly kind: "order";
      readonly fields: Readonly<Record<string, unknown>>;
      /** Of this order and no other; the same again is the same task. */
      readonly id?: string;
      readonly workspace?: string | undefined;
      readonly ref?: string;
    }
  | { readonly kind: "ignored"; readonly reason: string };

/** `isSigned`: the secret of the source signed it, not long ago where the way of signing knows the time. */
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

export function words(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
