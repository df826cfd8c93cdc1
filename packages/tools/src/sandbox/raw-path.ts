/**
 * Paths as the kernel has them: bytes. A raw path is a string with one character per byte (latin1), so that names that
 * are not UTF-8 work like any other. Text is converted at the edges only.
 */

export type RawPath = string;

export function toRaw(text: string): RawPath {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** For display and records; bytes that are no text are replaced. */
export function toText(raw: RawPath): string {
  return isAscii(raw) ? raw : Buffer.from(raw, "latin1").toString("utf8");
}

/** It survives the conversion to text and back. */
export function isText(raw: RawPath): boolean {
  return isAscii(raw) || toRaw(toText(raw)) === raw;
}

export function toSystem(raw: RawPath): string | Buffer {
  return isAscii(raw) ? raw : Buffer.from(raw, "latin1");
}

const BEYOND_ASCII = /[^\0-\x7f]/;

/** Called very often: before it is compiled, a loop takes three times as long as a pattern. */
export function isAscii(text: string): boolean {
  return !BEYOND_ASCII.test(text);
}
