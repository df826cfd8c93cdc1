/** A document as it is written into a file of its own. */
export function asJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
