/**
 * Turns of an outside agent: a played Codex that starts, does a fixed amount of work and exits, driven by Heddle and by a client that
 * does nothing but speak to it, one after the other. Usage: agent-cost-worker.ts HOME PAIRS [idle]. Prints, for each pair, wall time
 * and processor time of both; that of a turn is of this process and of every process that ended in it. Some pairs without work come
 * first, so that what is measured is loaded, compiled and open (`agent-cost.ts`); with `idle` no turn has work.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openHeddle } from "@heddle/agent";

/** Some 600 ms of processor time; an agent program of today uses more in a turn. */
const WORK = "let h = 0; for (let i = 0; i < 100_000_000; i += 1) h = (h * 31 + i) | 0; process.exitCode = h & 0";
const PLAY = join(import.meta.dirname, "..", "packages/agent/test/agent-play-in-child.ts");
const WARM_UPS = 12;
/** What a turn leaves to be done, closed sandboxes and written files, counts too. */
const REST_MS = 60;
/** Of /proc, on every Linux. */
const TICK_MS = 10;

const [folder = "", pairs = "1", kind] = process.argv.slice(2);
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

const program = { protocol: "codex" as const, command: process.execPath, args, hosts: [], folders: [] };
await using heddle = await openHeddle({
  home: join(folder, "home"),
  providers: [],
  runners: { codex: program },
  env: { PATH: process.env["PATH"] },
  isUnattended: true,
});
let thread: string | undefined;

async function byHeddle(): Promise<void> {
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
}

export interface Spent {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** User and system time of this process, and of those it has waited for with all that they have. */
function cpuMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}

async function measured(turn: () => Promise<void>): Promise<Spent> {
  const [cpu, startedAt] = [cpuMs(), performance.now()];
  await turn();
  const wallMs = performance.now() - startedAt;
  await sleep(REST_MS);
  return { wallMs, cpuMs: cpuMs() - cpu };
}

async function pair(count: number): Promise<{ readonly heddle: Spent; readonly alone: Spent }> {
  if (count % 2 === 0) return { heddle: await measured(byHeddle), alone: await measured(direct) };
  const alone = await measured(direct);
  return { heddle: await measured(byHeddle), alone };
}

for (let count = 0; count < WARM_UPS; count += 1) await pair(count);
if (kind !== "idle") await rm(idle);
const measuredPairs: unknown[] = [];
for (let count = 0; count < Number(pairs); count += 1) measuredPairs.push(await pair(count));
process.stdout.write(`${JSON.stringify(measuredPairs)}\n`);
