/** A proxy on loopback that cuts connections in the middle, as networks do. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  /** How often it has cut a connection. */
  readonly cuts: number;
  /** From now on connections live. */
  fix(): void;
}

/** Each connection passes so many bytes of the server's, as `bytesFor` says for the nth, and is then cut off. */
export async function openCuttingProxy(target: string, bytesFor: (nth: number) => number): Promise<CuttingProxy> {
  const { hostname, port, host } = new URL(target);
  const open = new Set<Socket>();
  let cuts = 0;
  let accepted = 0;
  let isMended = false;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let left = isMended ? Infinity : bytesFor((accepted += 1));
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      open.delete(client);
      open.delete(upstream);
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", end).on("close", end);
    }
    // The server answers only to its own name.
    client.on("data", (chunk) =>
      upstream.write(chunk.toString("latin1").replace(/^host: .*$/im, `host: ${host}`), "latin1"),
    );
    upstream.on("data", (chunk) => {
      client.write(chunk.subarray(0, Math.min(left, chunk.length)));
      left -= chunk.length;
      if (left > 0) return;
      cuts += 1;
      // What was passed on may still arrive; the rest never will.
      client.end();
      upstream.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    get cuts() {
      return cuts;
    },
    fix() {
      isMended = true;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
