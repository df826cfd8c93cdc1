/** A collector of traces on loopback, which keeps what it is sent. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string | number>> }[];
  readonly status?: { readonly code: number };
}

export interface Collector extends AsyncDisposable {
  readonly url: string;
  /** Everything that came, as it came. */
  readonly bodies: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  readonly spans: readonly ReceivedSpan[];
  /** When spans of so many kinds have come. */
  has(...names: readonly string[]): Promise<void>;
}

/** `hangs`: it takes what comes and never answers. */
export async function openCollector({ hangs = false } = {}): Promise<Collector> {
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  let changed = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => (body += part));
    request.on("end", () => {
      bodies.push(body);
      headers.push(request.headers);
      changed.resolve();
      changed = Promise.withResolvers();
      if (!hangs) response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const spans = (): readonly ReceivedSpan[] => bodies.flatMap(spansIn);
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    headers,
    get spans() {
      return spans();
    },
    async has(...names) {
      while (!names.every((name) => spans().some((span) => span.name === name))) await changed.promise;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface Sent {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[] }[];
}

function spansIn(body: string): readonly ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(body) as Sent;
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}
