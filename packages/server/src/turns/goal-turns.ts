/**
 * Turns for the goal of a thread: while it is active and nothing else runs, one after the other, until the agent says that
 * it is reached or blocked, the budget is used up, somebody stops it, or it turns in circles.
 *
 *   set active ─▶ turn ─▶ completed ─▶ still active ─▶ turn …
 *                   │                       ├─ budget used up ─▶ budgetLimited
 *                   │                       └─ nothing but words, again and again ─▶ blocked
 *                   ├─ interrupted ─▶ paused
 *                   ├─ failed ─▶ blocked
 *                   └─ the server ends ─▶ still active; begun again when the thread is resumed in the next one
 */
import { awaitTerminal, readGoal, setGoal, type Heddle, type StartTurn, type TerminalEvent } from "@heddle/agent";
import type { Journal, TurnRow } from "@heddle/journal";
import { isHeddleError, type Goal, type TurnSettings } from "@heddle/protocol";
import type { LoadedThread, LoadedThreads } from "../codex/loaded.ts";

export interface GoalTurns extends AsyncDisposable {
  /** Begins work for the goal of a loaded thread, after what is under way. */
  begin(threadId: string): void;
}

export interface GoalTurnsOptions {
  readonly heddle: Pick<Heddle, "as" | "journal">;
  readonly threads: LoadedThreads;
  /** What the next turn of a thread runs with. */
  readonly next: (thread: LoadedThread) => Promise<TurnSettings>;
  readonly log: (line: string) => void;
}

/** An agent that only talks is not getting on. */
const MAX_SILENT_TURNS = 3;
/** So many in a row need a person to look. */
const MAX_TURNS = 50;

export function openGoalTurns({ heddle, threads, next, log }: GoalTurnsOptions): GoalTurns {
  const { journal } = heddle;
  const closing = new AbortController();
  const { signal } = closing;
  const drives = new Map<string, Promise<void>>();

  /** The status the goal has come to by the turns; undefined: it is not for this to decide any more. */
  async function drive(threadId: string): Promise<Goal["status"] | undefined> {
    let silent = 0;
    for (let turns = 0; turns < MAX_TURNS && !signal.aborted; turns += 1) {
      const before = await readGoal(journal, threadId);
      const loaded = threads.get(threadId);
      if (before?.status !== "active" || loaded === undefined) return undefined;
      // Looked at before a turn, not after it: the server that ran the last one may be gone.
      if (before.tokenBudget !== undefined && before.tokensUsed >= before.tokenBudget) return "budgetLimited";
      if (silent >= MAX_SILENT_TURNS) return "blocked";
      const { workspace } = loaded;
      const settings = await next(loaded);
      const wanted = { thread: threadId, workspace, input: [], settings, task: "goal" } as const;
      const end = await runGoalTurn(heddle, wanted, signal);
      if (end === undefined) continue;
      // A server that stops ends the turn, not the goal.
      if (signal.aborted) return undefined;
      const goal = await readGoal(journal, threadId);
      if (goal === undefined) return undefined;
      if (goal.status !== "active") return undefined;
      if (end.status !== "completed") return end.status === "interrupted" ? "paused" : "blocked";
      silent = end.hasActed ? 0 : silent + 1;
    }
    return signal.aborted ? undefined : "paused";
  }

  /** Work that cannot begin is told by the goal, and in the log why. */
  async function work(threadId: string): Promise<void> {
    let status: Goal["status"] | undefined;
    try {
      status = await drive(threadId);
    } catch (error) {
      if (signal.aborted) return;
      log(`there can be no turn for the goal of ${threadId}: ${String(error)}`);
      status = "blocked";
    }
    if (status !== undefined) await setGoal(journal, threadId, { status, by: "system" });
  }

  return {
    begin(threadId) {
      if (signal.aborted) return;
      // Whoever is at it may have looked at the goal for the last time.
      const before = drives.get(threadId) ?? Promise.resolve();
      const driving = before
        .then(() => work(threadId))
        .catch((error: unknown) => log(`the goal of ${threadId} could not be changed: ${String(error)}`))
        .finally(() => {
          if (drives.get(threadId) === driving) drives.delete(threadId);
        });
      drives.set(threadId, driving);
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled(drives.values());
    },
  };
}

interface Ended {
  readonly turnId: string;
  readonly status: "completed" | "failed" | "interrupted";
  /** The agent has called a tool. */
  readonly hasActed: boolean;
}

/** undefined: a turn for something else ran, and has ended. */
async function runGoalTurn(
  heddle: GoalTurnsOptions["heddle"],
  wanted: StartTurn & { readonly thread: string },
  signal: AbortSignal,
): Promise<Ended | undefined> {
  const { journal } = heddle;
  const { thread } = wanted;
  try {
    const { turnId, admittedVersion, done } = await heddle.as("system").startTurn(wanted);
    return await endOf(journal, { id: turnId, threadId: thread, admittedVersion }, done);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "turn.active") throw error;
    const open = await journal.threads.lastTurn(thread);
    if (open?.status !== "open") return undefined;
    const { id, admittedVersion } = open;
    const end = await endOf(journal, open, awaitTerminal(journal, thread, id, admittedVersion, signal));
    // One that waits for an answer since before this server is the goal's own.
    const [admitted] = await journal.read({ stream: thread, after: admittedVersion - 1, limit: 1 });
    return admitted?.body.type === "turn.admitted" && admitted.body.task === "goal" ? end : undefined;
  }
}

async function endOf(
  journal: Journal,
  { id, threadId, admittedVersion }: Pick<TurnRow, "id" | "threadId" | "admittedVersion">,
  terminal: Promise<TerminalEvent>,
): Promise<Ended> {
  const { status } = (await terminal).body;
  const events = await journal.read({ stream: threadId, after: admittedVersion, types: ["tool.settled"] });
  const hasActed = events.some(({ body }) => body.type === "tool.settled" && body.turnId === id);
  return { turnId: id, status, hasActed };
}
