import type { IncomingMessage } from "node:http";

/**
 * A header that may be there once and came twice: Node keeps the first, another program on the way may have gone by the
 * second. Lists, which may be split over several lines, are joined and not meant.
 */
export function repeatedHeader({ headers, headersDistinct }: IncomingMessage): string | undefined {
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (values.length > 1 && headers[name] === values[0]) return name;
  }
  return undefined;
}
