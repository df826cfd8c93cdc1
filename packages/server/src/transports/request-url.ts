/** The address of a request, read so that nothing a client writes there can break it. */
import type { IncomingMessage } from "node:http";

/** Undefined: no path, but what only proxies are sent. Two slashes at its beginning are a path too, and no other host. */
export function urlOf({ url = "/" }: IncomingMessage): URL | undefined {
  return url.startsWith("/") ? (URL.parse(`http://host${url}`) ?? undefined) : undefined;
}
