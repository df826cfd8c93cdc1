/**
 * A line between a page and its server on another port. Its streams can fall silent without being closed, as behind a
 * machine that slept, and a beat of the server can be sent down them without waiting for it.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface QuietLine extends AsyncDisposable {
  readonly url: string;
  /** Every stream that is open now brings nothing any more, and is not closed. */
  silence(): void;
  /** What the server sends every 15 seconds. */
  beat(): void;
}

const BEAT = ":\n\n";
const CHUNK = `${BEAT.length.toString(16)}\r\n${BEAT}\r\n`;

export async function openQuietLine(target: string): Promise<QuietLine> {
  const { hostname, port, host, origin } = new URL(target);
  const sockets = new Set<Socket>();
  const streams = new Set<Socket>();
  const silent = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const end = (): void => {
      for (const socket of [client, upstream]) {
        socket.destroy();
        for (const set of [sockets, streams, silent]) set.delete(socket);
      }
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.on("data", (chunk) => {
      streams.delete(client);
      // The server answers only to its own name.
      const said = chunk.toString("latin1").replaceAll(/^host: .*$/gim, `host: ${host}`);
      upstream.write(said.replaceAll(/^origin: .*$/gim, `origin: ${origin}`), "latin1");
    });
    upstream.on("data", (chunk) => {
      if (/^content-type: text\/event-stream/im.test(chunk.toString("latin1"))) streams.add(client);
      if (!silent.has(client)) client.write(chunk);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    silence() {
      for (const stream of streams) silent.add(stream);
    },
    beat() {
      for (const stream of streams) stream.write(CHUNK);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
