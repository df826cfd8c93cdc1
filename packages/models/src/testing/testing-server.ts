/** The basis of the issuers for tests: real HTTP on 127.0.0.1, with a record of the requests and faults on demand. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";

/** In every token; an output that contains it has leaked one. */
export const CANARY = "canary-7f3a91c2e5";

export interface Asked {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The fields of a form or of a JSON object, as text. */
  readonly body: Readonly<Record<string, string>>;
}

export type IssuerFault =
  | { readonly kind: "redirect"; readonly to: string }
  | { readonly kind: "status"; readonly status: number; readonly body?: unknown }
  /** No answer, ever. */
  | { readonly kind: "silent" }
  | { readonly kind: "reset" };

/** What servers were asked, and how they are to fail. Two servers can share one. */
export class RequestLog {
  readonly requests: Asked[] = [];
  readonly #faults = new Map<string, IssuerFault[]>();
  #waiting: { path: string; count: number; done: () => void }[] = [];

  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  /** Faults of the next requests to a path, in order. */
  fault(path: string, ...faults: readonly IssuerFault[]): void {
    this.#faults.set(path, [...(this.#faults.get(path) ?? []), ...faults]);
  }

  arrived(path: string, count: number): Promise<void> {
    if (this.count(path) >= count) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ path, count, done: resolve });
    return promise;
  }

  add(request: Asked): IssuerFault | undefined {
    this.requests.push(request);
    for (const { path, count, done } of this.#waiting) if (this.count(path) >= count) done();
    return this.#faults.get(request.path)?.shift();
  }
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly Asked[];
  count(path: string): number;
  fault(path: string, ...faults: readonly IssuerFault[]): void;
  /** Resolves when a path has been asked this often. */
  arrived(path: string, count: number): Promise<void>;
}

export async function startTestServer(
  answer: (asked: Asked, response: ServerResponse) => void,
  log: RequestLog = new RequestLog(),
): Promise<TestServer> {
  const server = createServer((incoming, response) => {
    const take = async (): Promise<void> => {
      const { pathname: path, searchParams: query } = new URL(incoming.url ?? "/", "http://127.0.0.1");
      let text = "";
      for await (const chunk of incoming.setEncoding("utf8")) text += String(chunk);
      const { method = "", headers } = incoming;
      const asked = { method, path, query, headers, text, body: fieldsOf(text) };
      const fault = log.add(asked);
      if (fault === undefined) answer(asked, response);
      else misbehave(response, fault);
    };
    take().catch(() => response.destroy());
  });
  return {
    url: await listenAnywhere(server),
    requests: log.requests,
    count: (path) => log.count(path),
    fault: (path, ...faults) => log.fault(path, ...faults),
    arrived: (path, count) => log.arrived(path, count),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** On a free port of 127.0.0.1; returns the address. */
export async function listenAnywhere(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

function misbehave(response: ServerResponse, fault: IssuerFault): void {
  if (fault.kind === "redirect") response.writeHead(302, { location: fault.to }).end();
  if (fault.kind === "status") send(response, fault.status, fault.body ?? {});
  if (fault.kind === "reset") response.destroy();
}

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function fieldsOf(text: string): Record<string, string> {
  if (text === "") return {};
  const pairs: Iterable<[string, unknown]> = text.startsWith("{")
    ? Object.entries(JSON.parse(text) as Record<string, unknown>)
    : new URLSearchParams(text);
  return Object.fromEntries([...pairs].map(([name, value]) => [name, String(value)]));
}
