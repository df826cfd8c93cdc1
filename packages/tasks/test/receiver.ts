/** A real HTTP receiver on loopback that answers as it is told: a status, with headers, after a while, or never. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly path: string;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Never answers; the connection stays open. */
  readonly hangs?: boolean;
}

export interface Receiver extends AsyncDisposable {
  readonly url: URL;
  readonly port: number;
  readonly received: readonly Received[];
}

export async function openReceiver(
  answer: (received: Received, count: number) => Answer = () => ({ status: 204 }),
  port = 0,
): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = { headers: request.headers, body: Buffer.concat(chunks).toString("utf8"), path: request.url ?? "" };
      received.push(one);
      const { status, headers, hangs } = answer(one, received.length);
      if (hangs !== true) response.writeHead(status, { ...headers }).end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${address.port}/hook`),
    port: address.port,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
