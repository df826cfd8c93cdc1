/**
 * One strike: Heddle does some work with a failpoint armed, and what is left is looked at with a second, unharmed one,
 * which then goes on in the same thread. The work comes in kinds, because no single run reaches every failpoint.
 */
import path from "node:path";
import type { Heddle } from "@heddle/agent";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import type { Failpoint } from "@heddle/protocol/failpoints";
import { inject } from "vitest";
import { check, reopen, type Acknowledged, type Findings } from "./checker.ts";
import { askServer, execArgs, jsonLines, openWorld, run, type Ran, type World } from "./world.ts";

type ScriptStep = Awaited<ReturnType<NonNullable<ModelServerOptions["respond"]>>>;

/**
 * `exec`: a turn with commands, a patch and a retry. `batch`: the same with artifacts. `recovery`: the same on a home with
 * an abandoned turn. `messages`: a turn that tells another agent something and asks it a question, which wakes it.
 */
export type Work = "exec" | "batch" | "recovery" | "approval" | "messages";

export interface Struck {
  readonly ran: Ran;
  /** After the strike. */
  readonly found: Findings;
  /** Of all turns, after the strike. */
  readonly statuses: readonly string[];
  /** After one more turn in every thread. */
  readonly foundLater: Findings;
  readonly laterStatuses: readonly string[];
  /** Everything commands left, in order. */
  readonly effects: readonly string[];
  /** How long opening and closing abandoned turns took. */
  readonly reopenMs: number;
}

const PATCH = ["*** Begin Patch", "*** Add File: a.txt", "+a", "*** Add File: b.txt", "+b", "*** End Patch"].join("\n");

const ASKED = "asked";
/** Longer than any answer takes here; a question whose answer an error kept back waits it out. */
const ASK_MS = 5_000;

/** The agent that is told and asked; any thread but this one does the work. */
const ANSWERS: readonly ScriptStep[] = [{ text: "I am here." }, { text: "It is 4617." }, { text: "I heard." }];

/** The first turn ends with step 4, the next one with step 6. A step is played once in a thread, so are its effects. */
function scriptOf(thread: string, work: Work): readonly ScriptStep[] {
  const echo = (word: string): NonNullable<ScriptStep["calls"]>[number] => ({
    tool: "exec_command",
    args: { cmd: `echo ${word}-${thread} >> effects.log` },
  });
  if (work === "messages") {
    return [
      { calls: [echo("first"), { tool: "tell_agent", args: { to: ASKED, text: "I begin." } }] },
      { calls: [{ tool: "ask_agent", args: { to: ASKED, text: "Which port is it?", timeout_ms: ASK_MS } }] },
      { calls: [echo("second")] },
      { text: "The first part is done." },
      { calls: [echo("third")] },
      { text: "All is done." },
    ];
  }
  return [
    { text: "I begin.", calls: [echo("first")] },
    { calls: [{ tool: "apply_patch", args: PATCH }, echo("second")] },
    // Both only read, so they run side by side.
    { calls: ["a.txt", "b.txt"].map((name) => ({ tool: "view_image", args: { path: name } })) },
    { text: "The first part is done." },
    { calls: [echo("third")] },
    { text: "All is done." },
  ];
}

const APPROVAL_WORKER = path.join(inject("children"), "approval-worker.mjs");

export function worksReaching(name: Failpoint): readonly Work[] {
  if (name.startsWith("approval.")) return ["approval"];
  if (name.startsWith("artifact.")) return ["batch"];
  if (name.startsWith("recover.")) return ["recovery"];
  if (name.startsWith("message.")) return ["messages"];
  // Only a server goes on with a turn that waited for an answer; app-server-parked.proc.test.ts strikes it.
  if (name === "turn.after-resume") return [];
  // No run writes credentials; packages/models/src/auth/store.proc.test.ts strikes whoever does.
  if (name.startsWith("credentials.")) return [];
  // No output is long enough here; packages/cli/src/evidence/outputs.proc.test.ts strikes whole outputs.
  if (name.startsWith("blob.")) return [];
  // No run hops here; packages/agent/src/approvals/thread-hop.proc.test.ts strikes hops.
  if (name.startsWith("hop.")) return [];
  // No run deletes; packages/journal/src/sqlite/purge.proc.test.ts strikes a deletion.
  if (name.startsWith("purge.")) return [];
  // No run has tasks; task-kills.test.ts strikes the harness, and other tests of tasks the rest (trees: tree.proc.test.ts,
  // merges: commit-into.proc.test.ts, contests: contest-kill.proc.test.ts).
  if (/^(task|check|contest|notify|inbox|worktree|tree|merge)\./.test(name)) return [];
  return name.startsWith("journal.") && name !== "journal.migrate.before-commit" ? ["exec", "recovery"] : ["exec"];
}

export async function strike(work: Work, failpoint: string): Promise<Struck> {
  await using world = await openWorld();
  const asked = new Set<string>();
  await using server = await startServer(work, asked);
  if (work === "recovery") await abandonTurn(world, server);
  if (work === "messages") asked.add(await makeAsked(world, server));
  const ran = await doWork(work, world, server, failpoint);
  const threads = jsonLines(ran.stdout).flatMap(({ type, thread_id }) =>
    type === "thread.started" ? [thread_id ?? ""] : [],
  );
  const acknowledged = threads.map((threadId): Acknowledged => ({ threadId }));
  const startedAt = performance.now();
  await using heddle = await reopen(world.home, [server.provider("openai-responses")]);
  const reopenMs = performance.now() - startedAt;
  const found = await check(heddle, { acknowledged, effects: await world.effects() });
  const statuses = await statusesOf(heddle, asked);
  const laterStatuses = await oneMoreTurnEach(heddle, world);
  const effects = await world.effects();
  const foundLater = await check(heddle, { acknowledged, effects });
  return { ran, found, statuses, foundLater, laterStatuses, effects, reopenMs };
}

function startServer(work: Work, asked: ReadonlySet<string>): Promise<ModelServer> {
  let refusals = 0;
  const isAsked = (thread: string): boolean => work === "messages" && (asked.size === 0 || asked.has(thread));
  return startModelServer({
    respond: ({ answers, body }) => {
      const thread = threadIn(body);
      const script = isAsked(thread) ? ANSWERS : scriptOf(thread, work);
      return script[answers] ?? { text: "Nothing is left to do." };
    },
    // One attempt is refused on the way, so that a retry is part of every run.
    faults: ({ answers }) => {
      if (answers !== 2 || refusals > 0) return undefined;
      refusals += 1;
      return { kind: "status", status: 429, headers: { "retry-after": "0" } };
    },
  });
}

/** The wire names the thread, so that each can be given words of its own. */
function threadIn(body: unknown): string {
  if (typeof body === "object" && body !== null && "prompt_cache_key" in body) return String(body.prompt_cache_key);
  throw new Error("the request does not name its thread");
}

async function doWork(work: Work, world: World, server: ModelServer, failpoint: string): Promise<Ran> {
  const env = { HEDDLE_FAILPOINT: failpoint };
  if (work === "batch") {
    const kept = ["--artifact-root", path.join(world.root, "artifacts"), "--run-id", "struck"];
    return run(execArgs(...askServer(server), ...kept), { world, env });
  }
  if (work === "messages") return run(execArgs(...askServer(server), "-c", "messages.tools=true"), { world, env });
  if (work !== "approval") return run(execArgs(...askServer(server)), { world, env });
  return run([world.home, world.workspace], { world, env, program: APPROVAL_WORKER });
}

/** Leaves a turn that died with a command done and not settled. */
async function abandonTurn(world: World, server: ModelServer): Promise<void> {
  const { signal, stderr } = await doWork("exec", world, server, "turn.after-effect=kill");
  if (signal !== "SIGKILL") throw new Error(`the turn was to be abandoned, and was not: ${stderr}`);
}

/** The agent that messages go to, in a thread of its own, which they may wake. */
async function makeAsked(world: World, server: ModelServer): Promise<string> {
  const made = await run(execArgs(...askServer(server), "--agent-name", ASKED), { world });
  const woken = await run(["agents", "wake", ASKED, "on"], { world });
  const [first] = jsonLines(made.stdout);
  if (made.code !== 0 || woken.code !== 0 || first?.thread_id === undefined) {
    throw new Error(`the other agent could not be made: ${made.stderr}${woken.stderr}`);
  }
  return first.thread_id;
}

/** Not of those that only answer. */
async function statusesOf(heddle: Heddle, asked: ReadonlySet<string>): Promise<string[]> {
  const threads = (await heddle.journal.threads.list({ limit: 10 })).filter(({ id }) => !asked.has(id));
  const turns = await Promise.all(threads.map(({ id }) => heddle.journal.threads.turns(id)));
  return turns.flat().map(({ status }) => status);
}

/** In every thread that is there; when the admission was lost nothing was promised, and a new thread starts. */
async function oneMoreTurnEach(heddle: Heddle, world: World): Promise<string[]> {
  const known = (await heddle.journal.threads.list({ limit: 10 })).map(({ id }) => id);
  const statuses: string[] = [];
  for (const thread of known.length > 0 ? known : [{ workspace: world.workspace, origin: "e2e" }]) {
    const { done } = await heddle.as("user:owner").startTurn({
      thread,
      input: [{ type: "text", text: "go on" }],
      settings: {
        provider: "test",
        model: "gpt-5.5",
        sandboxMode: "workspace-write",
        networkAccess: false,
        writableRoots: [],
        approvalPolicy: "never",
      },
    });
    statuses.push((await done).body.status);
  }
  return statuses;
}
