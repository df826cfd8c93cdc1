/**
 * Which values of an MCP server's environment and headers are secrets. Whoever hands a value to a server may hand over a
 * key under any name, so a value is one unless it can be seen that it is none: what is removed as a secret is removed
 * everywhere, and a model that works on `production` or `/srv/data` must go on reading it.
 */
import type { McpServerConfig } from "@heddle/protocol";

/** Names that tell: whatever such a value looks like, it is a secret. */
const SECRET_NAME = /key|token|secret|passw|credential|auth/i;

export function serverSecrets(server: McpServerConfig): readonly string[] {
  return Object.entries(valuesOf(server)).flatMap(([name, value]) => {
    // "Bearer abc": the value alone must not be found either.
    const words = [...new Set([value, ...value.split(/\s+/), ...passwordIn(value)])];
    return SECRET_NAME.test(name) ? words : words.filter((word) => !isPlain(word));
  });
}

export function valuesOf(server: McpServerConfig): Readonly<Record<string, string>> {
  return "url" in server ? server.headers : server.env;
}

const PATHS = /^(~|\.{1,2})?\/[^\s=]*$/;
/** Numbers, versions, dates, addresses of machines. */
const NUMBERS = /^[\d.,:+-]+$/;
/** A word as people write it, or a short number: `en_US.UTF-8` and `application/json` are made of them, keys are not. */
const PIECE = /^([A-Z]?[a-z]{1,14}|[A-Z]{1,14}|\d{1,4})$/;
const MAX_PIECES = 4;
const MAX_PLAIN_CHARS = 24;

function isPlain(value: string): boolean {
  if (PATHS.test(value) || NUMBERS.test(value)) return true;
  if (value.includes("://")) return isBareAddress(value);
  const pieces = value.split(/[-_.:,;/@ ]+/);
  return value.length <= MAX_PLAIN_CHARS && pieces.length <= MAX_PIECES && pieces.every((piece) => PIECE.test(piece));
}

function passwordIn(value: string): readonly string[] {
  const password = value.includes("://") ? URL.parse(value)?.password : undefined;
  return password === undefined || password === "" ? [] : [password];
}

/** A name, a password or a query of an address may be a key. */
function isBareAddress(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && `${url.username}${url.password}${url.search}${url.hash}` === "";
}
