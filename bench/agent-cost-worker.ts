/**
 * Turns of an outside agent: a played Codex that starts, does a fixed amount of work and exits, driven by Heddle or by a client that
 * does nothing but speak to it. Usage: agent-cost-worker.ts HOME heddle|direct TURNS. Prints the wall time of each turn that has work;
 * some without any come first, so that what is measured is loaded, compiled and open (`agent-cost.ts`).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { openHeddle } from "@heddle/agent";

/** Some 600 ms of processor time; an agent program of today uses more in a turn. */
const WORK = "let h = 0; for (let i = 0; i < 100_000_000; i += 1) h = (h * 31 + i) | 0; process.exitCode = h & 0";
const PLAY = join(import.meta.dirname, "..", "packages/agent/test/agent-play-in-child.ts");

const WARM_UPS = 12;

const [folder = "", which = "heddle", turns = "1"] = process.argv.slice(2);
const steps = JSON.stringify([{ runs: `test -e idle || '${process.execPath}' -e '${WORK}'` }, { says: "done" }]);
const args = ["--disable-warning=ExperimentalWarning", PLAY, "codex", steps];
const workspace = join(folder, "workspace");
await mkdir(workspace, { recursive: true });
const idle = join(workspace, "idle");
await writeFile(idle, "");

/** From the prompt to the end of the program. */
async function direct(): Promise<void> {
  const child = spawn(process.execPath, args, { cwd: workspace, stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  send({ id: 0, method: "initialize", params: { clientInfo: { name: "bench", version: "1" } } });
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, method }: { readonly id?: unknown; readonly method?: unknown } = JSON.parse(line);
    if (id === 0) send({ id: 1, method: "thread/start", params: { cwd: workspace, approvalPolicy: "never" } });
    if (id === 1) send({ id: 2, method: "turn/start", params: { input: [{ type: "text", text: "go" }] } });
    if (method === "turn/completed") break;
  }
  child.stdin.end();
  await exited;
}

async function each(turn: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let count = 0; count < WARM_UPS; count += 1) await turn();
  await rm(idle);
  for (let count = 0; count < Number(turns); count += 1) {
    const startedAt = performance.now();
    await turn();
    times.push(performance.now() - startedAt);
  }
  return times;
}

async function byHeddle(): Promise<readonly number[]> {
  const program = { protocol: "codex" as const, command: process.execPath, args, hosts: [], folders: [] };
  await using heddle = await openHeddle({
    home: join(folder, "home"),
    providers: [],
    runners: { codex: program },
    env: { PATH: process.env["PATH"] },
    isUnattended: true,
  });
  let thread: string | undefined;
  return await each(async () => {
    const { threadId, done } = await heddle.as("user:owner").startTurn({
      thread: thread ?? { workspace, origin: "bench" },
      input: [{ type: "text", text: "go" }],
      settings: {
        runner: "codex",
        provider: "codex",
        model: "default",
        sandboxMode: "workspace-write",
        networkAccess: false,
        writableRoots: [],
        approvalPolicy: "never",
      },
    });
    thread = threadId;
    const { body } = await done;
    if (body.status !== "completed") throw new Error(JSON.stringify(body));
  });
}

process.stdout.write(`${JSON.stringify(which === "direct" ? await each(direct) : await byHeddle())}\n`);
