/** What the issuers of tests stand on: real HTTP on 127.0.0.1, each request read whole, and a list of what came. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { readText } from "./auth/testing-http.ts";

export interface Asked {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
  count(path: string): number;
}

export async function startTestServer(answer: (asked: Asked, response: ServerResponse) => void): Promise<TestServer> {
  const asked: Asked[] = [];
  const server = createServer((incoming, response) => {
    readText(incoming)
      .then((text) => {
        const { pathname } = new URL(incoming.url ?? "/", "http://127.0.0.1");
        const one = { method: incoming.method ?? "", path: pathname, headers: incoming.headers, text };
        asked.push(one);
        answer(one, response);
      })
      .catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    asked,
    count: (path) => asked.filter((one) => one.path === path).length,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
