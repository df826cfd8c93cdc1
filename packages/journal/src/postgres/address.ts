/**
 * The address of a journal on Postgres: `postgres://user@host/database?schema=team`. One schema holds one journal; what the
 * driver knows of addresses (`sslmode`, `host` and the others) is passed on as it is.
 */
import { HeddleError } from "@heddle/protocol";

export interface PostgresAddress {
  /** For the driver, with the password. */
  readonly url: string;
  readonly schema: string;
  /** For messages, without the password. */
  readonly name: string;
  /** In the address, where it is. */
  readonly password: string | undefined;
}

const DEFAULT_SCHEMA = "heddle";
/** Also the name of a channel, which has 63 bytes. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,40}$/;

export function readAddress(address: string): PostgresAddress {
  const url = parse(address);
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  url.searchParams.delete("schema");
  if (!SCHEMA.test(schema) || schema.startsWith("pg_")) {
    const message = `schema=${schema} is not the name of a journal: lower-case letters, digits and _, up to 41 of them`;
    throw new HeddleError("config.invalid", message);
  }
  const host = url.host === "" ? (url.searchParams.get("host") ?? "localhost") : url.host;
  const password = url.password === "" ? undefined : decodeURIComponent(url.password);
  return { url: url.href, schema, password, name: `${host}${url.pathname} (schema ${schema})` };
}

function parse(address: string): URL {
  const url = URL.parse(address);
  if (url !== null && url.pathname.length > 1) return url;
  // The address itself may hold a password.
  throw new HeddleError("config.invalid", "the address of a store is postgres://user@host/database?schema=name");
}
