/**
 * Paths as the kernel has them: bytes. A raw path is a string with one character for each byte (latin1), so that a name
 * that is not UTF-8 is looked at, moved and compared like any other. Text comes in and goes out at the edges only.
 */

export type RawPath = string;

export function toRaw(text: string): RawPath {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** For people and for records; bytes that are no text are replaced. */
export function toText(raw: RawPath): string {
  return isAscii(raw) ? raw : Buffer.from(raw, "latin1").toString("utf8");
}

/** Its text leads back to it: it can be given to a program that takes text. */
export function isText(raw: RawPath): boolean {
  return isAscii(raw) || toRaw(toText(raw)) === raw;
}

/** As `node:fs` takes it. */
export function toSystem(raw: RawPath): string | Buffer {
  return isAscii(raw) ? raw : Buffer.from(raw, "latin1");
}

const BEYOND_ASCII = /[^\0-\x7f]/;

/** Of every path of a sandbox, many times: a loop that nobody has compiled yet takes three times as long as a pattern. */
export function isAscii(text: string): boolean {
  return !BEYOND_ASCII.test(text);
}
