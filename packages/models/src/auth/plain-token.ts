/** A token as it may stand in a header: one word of plain characters. Anything else could smuggle in a second header. */
const TOKEN = /^[\u0021-\u007e]{1,16384}$/;

export function isPlainToken(value: string): boolean {
  return TOKEN.test(value);
}
