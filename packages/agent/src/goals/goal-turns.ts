/**
 * Starts turns for the goal of a thread: one after the other while the goal is active and nothing else runs, until the
 * agent reports it as reached or blocked, the budget is used up, the user stops it, or no progress is made.
 *
 *   set active ─▶ turn ─▶ completed ─▶ still active ─▶ turn …
 *                   │                       ├─ budget used up ─▶ budgetLimited
 *                   │                       └─ several turns without a tool call ─▶ blocked
 *                   ├─ interrupted ─▶ paused
 *                   ├─ failed ─▶ blocked
 *                   └─ the process ends ─▶ still active; begun again when the thread is resumed in the next one
 */
import type { Journal, TurnRow } from "@heddle/journal";
import { isHeddleError, reasonOf, type EventOf, type Goal } from "@heddle/protocol";
import type { Heddle, StartTurn } from "../heddle.ts";
import { readGoal, setGoal } from "../threads/goal.ts";
import { awaitTerminal } from "../turns/terminal.ts";

export interface GoalTurns extends AsyncDisposable {
  /** Begins work for the goal of a thread, after the turn that is running. */
  begin(threadId: string): void;
}

export interface GoalTurnsOptions {
  readonly heddle: Pick<Heddle, "as" | "journal">;
  /** What the next turn of a thread runs with; undefined: the thread is no longer open here. */
  readonly next: (threadId: string) => Promise<Pick<StartTurn, "workspace" | "settings"> | undefined>;
  readonly log: (line: string) => void;
}

/** An agent that calls no tool in this many turns makes no progress. */
const MAX_TURNS_WITHOUT_CALLS = 3;
/** After this many turns in a row the goal is paused, so that the user looks at it. */
const MAX_TURNS = 50;

export function openGoalTurns({ heddle, next, log }: GoalTurnsOptions): GoalTurns {
  const { journal } = heddle;
  const closing = new AbortController();
  const { signal } = closing;
  const drives = new Map<string, Promise<void>>();

  /** The status that the turns have brought the goal to; undefined: it was decided elsewhere. */
  async function drive(threadId: string): Promise<Goal["status"] | undefined> {
    let withoutCalls = 0;
    for (let turns = 0; turns < MAX_TURNS && !signal.aborted; turns += 1) {
      const before = await readGoal(journal, threadId);
      const settings = before?.status === "active" ? await next(threadId) : undefined;
      if (before === undefined || settings === undefined) return undefined;
      // Checked before a turn, not after it: the process that ran the last one may have ended.
      if (before.tokenBudget !== undefined && before.tokensUsed >= before.tokenBudget) return "budgetLimited";
      if (withoutCalls >= MAX_TURNS_WITHOUT_CALLS) return "blocked";
      const end = await runGoalTurn(heddle, { thread: threadId, input: [], task: "goal", ...settings }, signal);
      if (end === undefined) continue;
      // A process that stops ends the turn, not the goal.
      if (signal.aborted || (await readGoal(journal, threadId))?.status !== "active") return undefined;
      if (end.status !== "completed") return end.status === "interrupted" ? "paused" : "blocked";
      withoutCalls = end.hasActed ? 0 : withoutCalls + 1;
    }
    return signal.aborted ? undefined : "paused";
  }

  /** When work cannot begin, the goal is blocked and the log says why. */
  async function work(threadId: string): Promise<void> {
    let status: Goal["status"] | undefined;
    try {
      status = await drive(threadId);
    } catch (error) {
      if (signal.aborted) return;
      log(`cannot start a turn for the goal of ${threadId}: ${reasonOf(error)}`);
      status = "blocked";
    }
    if (status !== undefined) await setGoal(journal, threadId, { status, by: "system" });
  }

  return {
    begin(threadId) {
      if (signal.aborted) return;
      // The drive that is running may have read the goal for the last time.
      const before = drives.get(threadId) ?? Promise.resolve();
      const driving = before
        .then(() => work(threadId))
        .catch((error: unknown) => log(`cannot change the goal of ${threadId}: ${reasonOf(error)}`))
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
  readonly status: EventOf<"turn.completed">["status"];
  /** The agent has called a tool. */
  readonly hasActed: boolean;
}

/** undefined: a turn for something else ran, and has ended. */
async function runGoalTurn(
  heddle: GoalTurnsOptions["heddle"],
  start: StartTurn & { readonly thread: string },
  signal: AbortSignal,
): Promise<Ended | undefined> {
  const { journal } = heddle;
  const { thread: threadId } = start;
  try {
    const { turnId: id, admittedVersion, done } = await heddle.as("system").startTurn(start);
    const { status } = (await done).body;
    return { status, hasActed: await hasCalledTool(journal, { id, threadId, admittedVersion }) };
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "turn.active") throw error;
    const open = await journal.threads.lastTurn(threadId);
    if (open?.status !== "open") return undefined;
    const { status } = (await awaitTerminal(journal, threadId, open.id, open.admittedVersion, signal)).body;
    // A turn that has waited for an answer since before this process started is the goal's own.
    const [admitted] = await journal.read({ stream: threadId, after: open.admittedVersion - 1, limit: 1 });
    if (admitted?.body.type !== "turn.admitted" || admitted.body.task !== "goal") return undefined;
    return { status, hasActed: await hasCalledTool(journal, open) };
  }
}

async function hasCalledTool(
  journal: Journal,
  { id, threadId, admittedVersion: after }: Pick<TurnRow, "id" | "threadId" | "admittedVersion">,
): Promise<boolean> {
  const settled = await journal.read({ stream: threadId, after, types: ["tool.settled"] });
  return settled.some(({ body }) => body.type === "tool.settled" && body.turnId === id);
}
