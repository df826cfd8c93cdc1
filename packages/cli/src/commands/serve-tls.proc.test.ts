/** TLS at the doors that are reached over TCP, with a certificate that signs itself. */
import { spawnSync } from "node:child_process";
import { chmod, readFile } from "node:fs/promises";
import { request, type RequestOptions } from "node:https";
import path from "node:path";
import { expect, test } from "vitest";
import { pointAt } from "../../test/app-server-client.ts";
import { openWorld, run, start, type Running, type World } from "../../test/heddle-process.ts";

/** Not of this tree: where the machine has none, these tests say so. */
const OPENSSL: string = "openssl";
const hasOpenssl = spawnSync(OPENSSL, ["version"]).status === 0;

interface Pair {
  readonly cert: string;
  readonly key: string;
  readonly options: readonly string[];
}

async function makePair(world: World): Promise<Pair> {
  const [cert, key] = [path.join(world.root, "cert.pem"), path.join(world.root, "key.pem")];
  const names = "subjectAltName=IP:127.0.0.1,DNS:localhost";
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const where = ["-subj", "/CN=localhost", "-addext", names, "-keyout", key, "-out", cert];
  const made = spawnSync(OPENSSL, ["req", "-x509", ...kind, ...where]);
  expect(made.status).toBe(0);
  await chmod(key, 0o600);
  return { cert, key, options: ["--tls-cert", cert, "--tls-key", key] };
}

interface Received {
  readonly status: number;
  readonly text: string;
}

function ask(url: string, options: RequestOptions): Promise<Received> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, ...options });
    sent.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => void (text += piece));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode ?? 0, text: "" });
    });
    sent.on("error", reject);
    sent.end();
  });
}

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** The address it says that it listens on. */
async function addressOf(running: Running, scheme: string): Promise<string> {
  const { stderr } = running.child;
  if (stderr === null) throw new Error("nothing to read");
  const pattern = new RegExp(`listening on (${scheme}://\\S+)\\n`);
  return new Promise((resolve, reject) => {
    let text = "";
    stderr.on("data", (piece: string) => {
      text += piece;
      const [, found] = pattern.exec(text) ?? [];
      if (found !== undefined) resolve(found);
    });
    stderr.on("end", () => reject(new Error(text)));
  });
}

test.runIf(hasOpenssl)(
  "serve --listen https:// (where there is openssl): clients check the certificate, tokens and origins count as before",
  async () => {
    await using world = await openWorld();
    await pointAt(world, "http://127.0.0.1:9");
    const pair = await makePair(world);
    await using running = start(["serve", "--listen", "https://127.0.0.1:0", ...pair.options], { world });
    const url = await addressOf(running, "https");
    await running.sees("token ");
    const token = (await readFile(path.join(world.home, "serve.token"), "utf8")).trim();
    const ca = await readFile(pair.cert);
    const headers = { authorization: `Bearer ${token}` };
    expect(await ask(`${url}/api/server`, { ca, headers })).toMatchObject({ status: 200 });
    expect(await ask(`${url}/api/server`, { ca })).toMatchObject({ status: 401 });
    const own = { ...headers, origin: url };
    expect(await ask(`${url}/api/server`, { ca, headers: own })).toMatchObject({ status: 200 });
    const plainOrigin = { ...headers, origin: url.replace("https:", "http:") };
    expect(await ask(`${url}/api/server`, { ca, headers: plainOrigin })).toMatchObject({ status: 403 });
    expect(await ask(`${url}/`, { ca, headers: { ...headers, ...UPGRADE } })).toMatchObject({ status: 101 });
    await expect(ask(`${url}/api/server`, { headers })).rejects.toThrow(/self-signed/);
    await expect(fetch(`${url.replace("https:", "http:")}/api/server`)).rejects.toThrow("fetch failed");
    const remembered = JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8")) as unknown;
    expect(remembered).toMatchObject({ url, addresses: [url] });
  },
);

test.runIf(hasOpenssl)(
  "app-server --listen wss:// (where there is openssl): the same for WebSocket, also where other machines can reach it",
  async () => {
    await using world = await openWorld();
    await pointAt(world, "http://127.0.0.1:9");
    const pair = await makePair(world);
    await using running = start(["app-server", "--listen", "wss://0.0.0.0:0", ...pair.options], { world });
    const url = (await addressOf(running, "wss")).replace("wss://0.0.0.0", "https://127.0.0.1");
    const token = (await readFile(path.join(world.home, "app-server.token"), "utf8")).trim();
    const ca = await readFile(pair.cert);
    expect(await ask(`${url}/readyz`, { ca })).toMatchObject({ status: 200 });
    expect(await ask(`${url}/`, { ca, headers: UPGRADE })).toMatchObject({ status: 401 });
    const headers = { ...UPGRADE, authorization: `Bearer ${token}` };
    expect(await ask(`${url}/`, { ca, headers })).toMatchObject({ status: 101 });
  },
);

test.runIf(hasOpenssl)("what does not go together is refused in one line (where there is openssl)", async () => {
  await using world = await openWorld();
  await pointAt(world, "http://127.0.0.1:9");
  const { cert, key, options } = await makePair(world);
  const refused = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await run(args, { world });
    return `${code} ${stderr}`;
  };
  expect(await refused("serve", "--listen", "https://127.0.0.1:0")).toMatch(/^2 .*needs both --tls-cert/);
  expect(await refused("serve", "--listen", "http://127.0.0.1:0", ...options)).toMatch(/^2 .*write --listen https/);
  expect(await refused("serve", "--listen", "http://0.0.0.0:0")).toMatch(
    /^2 .*--tls-cert and --tls-key, or add --allow/,
  );
  expect(await refused("app-server", "--listen", "ws://0.0.0.0:0")).toMatch(/^2 .*write wss:\/\//);
  const swapped = ["--tls-cert", key, "--tls-key", cert];
  await chmod(cert, 0o600);
  expect(await refused("serve", "--listen", "https://127.0.0.1:0", ...swapped)).toMatch(/^2 .*cannot be used/);
  await chmod(key, 0o644);
  expect(await refused("serve", "--listen", "https://127.0.0.1:0", ...options)).toMatch(/^8 .*chmod 600/);
});
