/** The goal of a thread: set and cleared by users, ended by the agent, kept in the journal. */
import {
  HeddleError,
  lessUsage,
  nextGoal,
  worked,
  type Author,
  type By,
  type Goal,
  type StandingGoal,
} from "@heddle/protocol";
import type { Journal, Used } from "@heddle/journal";
import { readPlan } from "./past.ts";
import { requireThread } from "./threads.ts";

export interface GoalChange {
  readonly objective?: string | undefined;
  readonly status?: Goal["status"] | undefined;
  readonly tokenBudget?: number | null | undefined;
}

const MAX_OBJECTIVE_CHARS = 4_000;

export async function readGoal(journal: Journal, threadId: string): Promise<StandingGoal | undefined> {
  await requireThread(journal, threadId);
  const { parts } = await readPlan(journal, threadId);
  let goal: StandingGoal | undefined;
  for (const { stream, upTo } of parts) {
    let seen = 0;
    const workUpTo = async (version: number): Promise<void> => {
      if (goal !== undefined) goal = worked(goal, await usedBetween(journal, stream, { after: seen, upTo: version }));
      seen = version;
    };
    for (const change of await journal.marks.events({ stream, kinds: ["thread.goal-changed"], upTo })) {
      await workUpTo(change.version);
      goal = nextGoal(goal, change);
    }
    await workUpTo(upTo);
  }
  return goal;
}

async function usedBetween(
  { threads }: Journal,
  stream: string,
  { after, upTo }: { readonly after: number; readonly upTo: number },
): Promise<Used> {
  const [before, all] = await Promise.all([threads.usedUpTo(stream, after), threads.usedUpTo(stream, upTo)]);
  return { usage: lessUsage(all.usage, before.usage), durationMs: all.durationMs - before.durationMs };
}

export async function setGoal(
  journal: Journal,
  threadId: string,
  { by, ...change }: GoalChange & By,
): Promise<StandingGoal> {
  const before = await readGoal(journal, threadId);
  const objective = change.objective?.trim() ?? before?.objective;
  if (objective === undefined) throw new HeddleError("usage.invalid", `thread ${threadId} has no goal to change`);
  if (objective === "" || objective.length > MAX_OBJECTIVE_CHARS) {
    throw new HeddleError("usage.invalid", `a goal has 1 to ${MAX_OBJECTIVE_CHARS} characters`);
  }
  const budget = change.tokenBudget === undefined ? before?.tokenBudget : (change.tokenBudget ?? undefined);
  const kept = before?.objective === objective ? before.status : undefined;
  const goal: Goal = {
    objective,
    status: change.status ?? kept ?? "active",
    ...(budget === undefined ? {} : { tokenBudget: budget }),
  };
  await journal.append({ stream: threadId, author: by, events: [{ type: "thread.goal-changed", v: 1, goal }] });
  const after = await readGoal(journal, threadId);
  if (after === undefined) throw new HeddleError("store.busy", `the goal of thread ${threadId} was cleared meanwhile`);
  return after;
}

export async function clearGoal(journal: Journal, threadId: string, by: Author): Promise<boolean> {
  if ((await readGoal(journal, threadId)) === undefined) return false;
  const events = [{ type: "thread.goal-changed", v: 1, goal: null }] as const;
  await journal.append({ stream: threadId, author: by, events });
  return true;
}
