/** A connection that is begun before its request: used when it stands, never missed when it does not. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { warmProvider } from "./attempt.ts";
import { agentOf } from "./connection.ts";
import { startModelServer, type ModelServer } from "../testing/testing.ts";
import { collect, completedOf, testProvider } from "../testing/testing-requests.ts";

const CHILD = fileURLToPath(new URL("../../test/ask-in-child.ts", import.meta.url));
const NODE = [process.execPath, "--conditions=heddle-source", CHILD] as const;
const OPENSSL: string = "openssl";
const hasOpenssl = spawnSync(OPENSSL, ["version"]).status === 0;

interface Front extends AsyncDisposable {
  readonly baseUrl: string;
  /** In the order in which they came. */
  readonly connections: readonly Socket[];
}

interface FrontOptions {
  /** Speaks TLS. */
  readonly pair?: { readonly cert: Buffer; readonly key: Buffer };
  /** True: something else was done with what came. */
  readonly onData?: (nth: number, socket: Socket) => boolean;
}

/** Stands before a model server and sees its connections. */
async function openFront(model: ModelServer, { pair, onData }: FrontOptions = {}): Promise<Front> {
  const connections: Socket[] = [];
  const { port, hostname } = new URL(model.url);
  const pass = (client: Socket): void => {
    const nth = connections.push(client);
    const behind = connect(Number(port), hostname);
    for (const socket of [client, behind]) socket.on("error", () => socket.destroy());
    client.on("close", () => behind.destroy());
    client.on("data", (chunk) => {
      if (onData?.(nth, client) === true) return;
      behind.write(chunk.toString("latin1").replace(/^host: .*$/im, `host: ${hostname}:${port}`), "latin1");
    });
    behind.pipe(client);
  };
  const server: Server = pair === undefined ? createServer(pass) : createTlsServer(pair, pass);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const scheme = pair === undefined ? "http" : "https";
  return {
    baseUrl: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    connections,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

test("the request takes the connection that was begun for it, and the next ones go on with it", async () => {
  await using model = await startModelServer({ script: [{ text: "hello" }] });
  await using front = await openFront(model);
  const provider = testProvider(model, "openai-responses", { baseUrl: front.baseUrl });
  await Promise.all([warmProvider(provider), warmProvider(provider)]);
  await vi.waitFor(() => expect(front.connections).toHaveLength(1));
  expect(model.requests).toHaveLength(0);
  completedOf(await collect(provider));
  // The answer is whole a moment before its connection is free.
  await vi.waitFor(() => expect(Object.keys(agentOf(new URL(front.baseUrl)).freeSockets)).toHaveLength(1));
  await warmProvider(provider);
  completedOf(await collect(provider));
  expect(model.requests).toHaveLength(2);
  expect(front.connections).toHaveLength(1);
});

test("one that was closed meanwhile is not used", async () => {
  await using model = await startModelServer({ script: [{ text: "hello" }] });
  await using front = await openFront(model);
  const provider = testProvider(model, "openai-responses", { baseUrl: front.baseUrl });
  await warmProvider(provider);
  await vi.waitFor(() => expect(front.connections).toHaveLength(1));
  front.connections[0]?.end();
  // Its other end has heard of it and has hung up too.
  await once(front.connections[0] as Socket, "close");
  const { events } = await collect(provider);
  expect(events.map(({ type }) => type)).not.toContain("retrying");
  expect(events.at(-1)?.type).toBe("completed");
  expect(front.connections).toHaveLength(2);
});

test("one that is reset as the request comes is no failure of the provider: it is asked again at once", async () => {
  await using model = await startModelServer({ script: [{ text: "hello" }] });
  await using front = await openFront(model, {
    onData: (nth, socket) => nth === 1 && socket.resetAndDestroy() === socket,
  });
  const provider = testProvider(model, "openai-responses", { baseUrl: front.baseUrl });
  await warmProvider(provider);
  await vi.waitFor(() => expect(front.connections).toHaveLength(1));
  const { events } = await collect(provider);
  expect(events.filter(({ type }) => type === "retrying")).toMatchObject([{ delayMs: 0 }]);
  expect(events.at(-1)?.type).toBe("completed");
});

test("where nobody listens the request says so, not whoever began to connect", async () => {
  await using model = await startModelServer();
  await using front = await openFront(model);
  const { baseUrl } = front;
  await front[Symbol.asyncDispose]();
  const provider = testProvider(model, "openai-responses", { baseUrl, maxAttempts: 1 });
  await warmProvider(provider);
  expect((await collect(provider)).error).toMatchObject({ code: "provider.unreachable" });
});

test("one that nobody uses keeps no process alive", async () => {
  await using model = await startModelServer();
  await using front = await openFront(model);
  const [program, ...args] = NODE;
  await promisify(execFile)(program, [...args, front.baseUrl], { timeout: 8000 });
  expect(front.connections).toHaveLength(1);
});

test.runIf(hasOpenssl)("over TLS the handshake is over before there is anything to ask", async () => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-connection-"));
  try {
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
    const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    spawnSync(OPENSSL, ["req", "-x509", ...kind, ...names, "-keyout", keyFile, "-out", certFile]);
    const pair = { cert: await readFile(certFile), key: await readFile(keyFile) };
    await using model = await startModelServer({ script: [{ text: "hello" }] });
    await using front = await openFront(model, { pair });
    const [program, ...args] = NODE;
    const child = spawn(program, [...args, front.baseUrl, "ask"], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certFile },
      stdio: ["pipe", "pipe", "inherit"],
    });
    // Its listener is called when the handshake is done.
    await vi.waitFor(() => expect(front.connections).toHaveLength(1), { timeout: 8000 });
    expect(model.requests).toHaveLength(0);
    const printed = once(child.stdout, "data");
    child.stdin.write("go\n");
    expect(String((await printed)[0])).toBe("completed");
    expect(front.connections).toHaveLength(1);
    await once(child, "close");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
