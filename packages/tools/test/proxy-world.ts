/** A web server on the loopback, a proxy before it, and a way to send it bytes as a hostile client would. */
import { createServer, type IncomingMessage } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { createNetworkLog } from "../src/network/network-log.ts";
import { createProxy, type ProxyOptions } from "../src/network/proxy.ts";

export interface WebServer extends AsyncDisposable {
  readonly port: number;
  /** Method, URL and header Host of each request. */
  readonly requests: string[];
}

export async function openWebServer(
  answer?: (request: IncomingMessage, port: number) => WebAnswer,
): Promise<WebServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.host}`);
    const body: Buffer[] = [];
    request.on("data", (chunk: Buffer) => body.push(chunk));
    request.on("end", () => {
      const { status = 200, headers = {}, text } = answer?.(request, portOf(server)) ?? { text: `got ${request.url}` };
      response
        .writeHead(status, headers)
        .end(Buffer.concat([typeof text === "string" ? Buffer.from(text) : text, ...body]));
    });
  });
  await listen(server, 0);
  return {
    port: portOf(server),
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

export interface WebAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: string | Buffer;
}

/** Sends back what it gets. */
export async function openEcho(): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createTcpServer((socket) => void socket.on("error", () => undefined).pipe(socket));
  await listen(server, 0);
  return {
    port: portOf(server),
    [Symbol.asyncDispose]: async () => void (await new Promise((done) => server.close(done))),
  };
}

export async function openProxy(rules: readonly string[], options: Partial<ProxyOptions> = {}) {
  const log = createNetworkLog();
  const proxy = createProxy({ rules, log, ...options });
  await listen(proxy.server, 0);
  const port = portOf(proxy.server);
  return {
    port,
    log,
    /** Everything it answers until it closes the connection. */
    send: (...pieces: readonly string[]) => exchange(port, pieces),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

function exchange(port: number, pieces: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
    for (const piece of pieces) socket.write(piece, "latin1");
  });
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}

export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen");
  return (address satisfies AddressInfo).port;
}
