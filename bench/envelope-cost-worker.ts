/**
 * Turns and calls in one process: how much processor time each takes. With `without`, nothing of envelopes is put on record and no
 * entry of the evidence is kept: the same program in all else. Usage: envelope-cost-worker.ts HOME with|without.
 * Prints one line of JSON (`envelope-cost.ts`).
 */
import { mkdir } from "node:fs/promises";
import { registerHooks } from "node:module";
import { join } from "node:path";

/** What is put before the text of a module: the function that it has is left alone under another name. */
const STUBS: Readonly<Record<string, readonly [find: string, put: string]>> = {
  "/agent/src/turns/enter-envelope.ts": [
    "export async function enteringEvents(",
    "export async function enteringEvents() { return []; }\nasync function enteringEventsBefore(",
  ],
  "/journal/src/projections/evidence.ts": [
    "export const evidence: Projection = {",
    "export const evidence: Projection = { table, changes: () => NO_CHANGES };\nconst evidenceBefore: Projection = {",
  ],
};

const HELLOS = 60;
const CALLS = 400;
const CALLS_OF_A_TURN = 40;

const [folder = "", which = "with"] = process.argv.slice(2);
const stubbed = new Set<string>();
if (which === "without") {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const [end, stub] = Object.entries(STUBS).find(([path]) => url.endsWith(path)) ?? [];
      if (end === undefined || stub === undefined) return loaded;
      const { source: bytes = "" } = loaded;
      const source = typeof bytes === "string" ? bytes : new TextDecoder().decode(bytes);
      if (!source.includes(stub[0])) throw new Error(`${end} has no ${stub[0]}`);
      stubbed.add(end);
      return { ...loaded, source: source.replace(...stub) };
    },
  });
}
const { openHeddle } = await import("@heddle/agent");

const listing = { tool: "list", args: {} };
const answers = (isCalling: boolean) =>
  isCalling ? [...Array.from({ length: CALLS_OF_A_TURN }, () => ({ calls: [listing] })), { text: "done" }] : [];
const workspace = join(folder, "workspace");
await mkdir(workspace, { recursive: true });

async function cpuOf(times: number, script: ReturnType<typeof answers>, home: string): Promise<number> {
  const text = { text: "hello" };
  await using heddle = await openHeddle({
    home: join(folder, home),
    providers: [{ id: "scripted", family: "openai", script: script.length === 0 ? [text] : script }],
    env: { PATH: process.env["PATH"] },
    isUnattended: true,
  });
  const turn = async (): Promise<void> => {
    const { done } = await heddle.as("user:owner").startTurn({
      thread: { workspace, origin: "bench" },
      input: [{ type: "text", text: "say hello" }],
      settings: {
        provider: "scripted",
        model: "scripted",
        sandboxMode: "workspace-write",
        networkAccess: false,
        writableRoots: [],
        approvalPolicy: "never",
      },
    });
    const { body } = await done;
    if (body.status !== "completed") throw new Error(JSON.stringify(body));
  };
  // The first ones load and compile.
  for (let warm = 0; warm < 10; warm += 1) await turn();
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) await turn();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}

const helloMs = await cpuOf(HELLOS, answers(false), "hello");
const callingMs = await cpuOf(CALLS / CALLS_OF_A_TURN, answers(true), "calls");
if (stubbed.size !== (which === "without" ? Object.keys(STUBS).length : 0)) throw new Error("not all was left out");
process.stdout.write(`${JSON.stringify({ helloMs, callMs: callingMs / CALLS_OF_A_TURN })}\n`);
