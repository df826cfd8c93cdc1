/** The headers that a proxy hands on: all but those that speak of one connection only. */
import type { IncomingMessage } from "node:http";

const OF_ONE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

type Pairs = readonly (readonly [string, string])[];

/** Names and values in turn, as Node takes them. */
export function forwardedHeaders(rawHeaders: readonly string[]): string[] {
  const pairs = pairsOf(rawHeaders);
  // A header may be named as one that ends here, too; never the one that says where a body ends.
  const ending = new Set(
    pairs
      .filter(([name]) => name.toLowerCase() === "connection")
      .flatMap(([, value]) => value.split(",").map((name) => name.trim().toLowerCase())),
  );
  ending.delete("content-length");
  return pairs.filter(([name]) => !OF_ONE_CONNECTION.has(name.toLowerCase()) && !ending.has(name.toLowerCase())).flat();
}

/** For the server: its own name, and how the body ends. */
export function requestHeaders(request: IncomingMessage, host: string): string[] {
  const kept = pairsOf(forwardedHeaders(request.rawHeaders));
  // Whoever expects to be told to continue has been told by the proxy.
  const others = kept.filter(([name]) => !["host", "expect"].includes(name.toLowerCase())).flat();
  const framing = request.headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"];
  return ["Host", host, ...others, ...framing];
}

/** Values of all headers Host. */
export function hostsOf({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): string[] {
  return pairsOf(rawHeaders).flatMap(([name, value]) => (name.toLowerCase() === "host" ? [value] : []));
}

function pairsOf(raw: readonly string[]): Pairs {
  return Array.from(
    { length: raw.length / 2 },
    (_, index) => [raw[2 * index] ?? "", raw[2 * index + 1] ?? ""] as const,
  );
}
