/** The goal of a thread: set, read, cleared. Its followers hear of it from the journal, whoever changed it. */
import { clearGoal as clear, readGoal, setGoal as set } from "@heddle/agent";
import { codexGoal, type ThreadGoalSetParams, type ThreadParams } from "@heddle/dialects/codex-app-server";
import type { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { goalUpdated } from "../../turns/goal-turns.ts";
import type { Reply } from "../../rpc/peer.ts";
import { refuse, requireRow } from "../thread-facts.ts";

const NOT_FOUND = "thread not found: ";

export async function setGoal(
  params: z.infer<typeof ThreadGoalSetParams>,
  { server, connection: { by } }: Call,
): Promise<Reply> {
  const { id } = await requireRow(server, params.threadId, NOT_FOUND);
  const { journal } = server.heddle;
  if (params.objective?.trim() === "") throw refuse("goal objective must not be empty");
  const known = await readGoal(journal, id);
  if (known === undefined && typeof params.objective !== "string") {
    throw refuse(`cannot update goal for thread ${id}: no goal exists`);
  }
  const goal = await set(journal, id, {
    objective: params.objective ?? undefined,
    status: params.status ?? undefined,
    tokenBudget: params.tokenBudget,
    by,
  });
  return {
    result: { goal: codexGoal(id, goal) },
    after() {
      server.threads.openFeed(id)?.tell(goalUpdated(id, goal));
      if (goal.status === "active") server.goals.begin(id);
    },
  };
}

export async function getGoal({ threadId }: z.infer<typeof ThreadParams>, { server }: Call): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NOT_FOUND);
  const goal = await readGoal(server.heddle.journal, id);
  return { result: { goal: goal === undefined ? null : codexGoal(id, goal) } };
}

export async function clearGoal(
  { threadId }: z.infer<typeof ThreadParams>,
  { server, connection: { by } }: Call,
): Promise<Reply> {
  const { id } = await requireRow(server, threadId, NOT_FOUND);
  const cleared = await clear(server.heddle.journal, id, by);
  const notification = { method: "thread/goal/cleared", params: { threadId: id } };
  return { result: { cleared }, after: () => (cleared ? server.threads.openFeed(id)?.tell(notification) : undefined) };
}
