/** Sockets of other programs that lie where a command can see them. */
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox, openUnconfined } from "./open.ts";
import type { Sandbox } from "./sandbox.ts";

const MODULES = fileURLToPath(new URL("../../../../node_modules/.heddle-sockets-", import.meta.url));
let base: string;
let connections = 0;
const servers: Server[] = [];

beforeEach(async () => {
  // Not below the folder for temporary files, which is another one inside.
  base = await realpath(await mkdtemp(MODULES).catch(() => mkdtemp(join(tmpdir(), "heddle-sockets-"))));
  connections = 0;
  for (const name of ["ws", "only", "mixed"]) await mkdir(join(base, name));
  await writeFile(join(base, "mixed/file"), "beside the sockets\n");
  await chmod(base, 0o755);
});

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  await rm(base, { recursive: true, force: true });
});

async function listen(...names: readonly string[]): Promise<Server[]> {
  const made = names.map(async (name) => {
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(join(base, name), resolve));
    servers.push(server);
    return server;
  });
  return await Promise.all(made);
}

const CONNECT = `
  const [base, ...names] = JSON.parse(process.env.NAMES);
  let open = 0;
  const all = names.map((name) => new Promise((done) => require("net").connect(base + "/" + name).on("connect", () => { open += 1; done(); }).on("error", done)));
  const first = require("fs").readFileSync("/proc/1/cmdline", "utf8").match(/heddle-init|heddle-standby|bwrap|$/)[0];
  Promise.all(all).then(() => console.log(open + " of " + names.length + " " + first));`;

async function connectInside(sandbox: Sandbox, names: readonly string[]): Promise<string> {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: [process.execPath, "-e", CONNECT],
    cwd: sandbox.policy.workspace,
    env: commandEnvironment(process.env, { NAMES: JSON.stringify([base, ...names]) }),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  await owned.exited;
  await output.close();
  return output.snapshot().text.trim();
}

const names = (folder: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${folder}/s${index}`);

for (const way of ["namespaces", "standby", "bwrap"] as const) {
  const isThere = way !== "bwrap" || findHostTool("bwrap") !== undefined;
  test.runIf(isThere)(
    `12.7: none of 250 sockets can be reached, nor one that comes later: ${way}${isThere ? "" : " (not installed)"}`,
    async () => {
      const sockets = [...names("mixed", 200), ...names("only", 40), ...names("ws", 10)];
      const made = await listen(...sockets);
      const policy = { workspace: join(base, "ws"), writeRoots: [], masked: [], network: "none" } as const;
      await using sandbox = await openSandbox(policy, { backend: way === "bwrap" ? "bwrap" : "namespaces" });
      await sandbox.ready;
      const standBy = (): void => (way === "standby" ? sandbox.standBy() : undefined);
      const first = way === "standby" ? "heddle-standby" : way === "bwrap" ? "bwrap" : "heddle-init";
      standBy();
      expect(await connectInside(sandbox, sockets)).toBe(`0 of 250 ${first}`);
      standBy();
      // Standing by already, when they come. One is made anew under its old name, and loses its cover with it.
      await connectInside(sandbox, ["mixed/s0"]);
      standBy();
      await new Promise((resolve) => made[0]?.close(resolve));
      const later = ["mixed/s0", "mixed/later", "only/later", "ws/later"];
      await listen(...later);
      expect(await connectInside(sandbox, later)).toBe(`0 of 4 ${first}`);
      standBy();
      expect(await connectInside(sandbox, later)).toBe(`0 of 4 ${first}`);
      expect(connections).toBe(0);
      // Without a sandbox all of them answer.
      expect(await connectInside(openUnconfined(policy), later)).toMatch("4 of 4");
    },
  );
}

test("with the host's network, what a command makes in its workspace is found by the next one", async () => {
  const workspace = join(base, "ws");
  await using sandbox = await openSandbox({ workspace, writeRoots: [workspace], masked: [], network: "all" });
  await sandbox.ready;
  await listen("ws/own");
  expect(await connectInside(sandbox, ["ws/own"])).toMatch("1 of 1");
});

for (const backend of ["namespaces", "bwrap"] as const) {
  const isThere = backend === "namespaces" || findHostTool("bwrap") !== undefined;
  test.runIf(isThere)(
    `12.7: sockets that go while a sandbox is opened do not keep it from opening, ${backend}${isThere ? "" : " (not installed)"}`,
    async () => {
      const policy = {
        workspace: join(base, "ws"),
        writeRoots: [join(base, "ws")],
        masked: [],
        network: "none",
      } as const;
      for (let opening = 0; opening < 3; opening += 1) {
        const gone = await listen(...names("mixed", 20));
        const opened = openSandbox(policy, { backend });
        await Promise.all(gone.map((server) => new Promise((resolve) => server.close(resolve))));
        await using sandbox = await opened;
        expect(await connectInside(sandbox, ["mixed/s0"])).toContain("0 of 1");
      }
    },
    60_000,
  );
}
