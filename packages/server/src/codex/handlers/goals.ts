/** The goal of a thread: set, read, cleared. Followers are notified from the journal. */
import { clearGoal as clear, readGoal, setGoal as set } from "@heddle/agent";
import { codexGoal } from "@heddle/dialects/codex-app-server";
import type { Handler } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { refuse, requireKept } from "../thread-facts.ts";

const KEPT = { missing: "thread not found: ", unkept: "ephemeral thread does not support goals: " };

export const setGoal: Handler<"thread/goal/set"> = async (params, { server, connection }) => {
  const { id } = await requireKept(server, params.threadId, KEPT);
  const { journal } = server.heddle;
  if (params.objective?.trim() === "") throw refuse("goal objective must not be empty");
  const known = await readGoal(journal, id);
  if (known === undefined && typeof params.objective !== "string") {
    throw refuse(`cannot update goal for thread ${id}: no goal exists`);
  }
  const { objective, status, tokenBudget } = params;
  const change = { objective: objective ?? undefined, status: status ?? undefined, tokenBudget, by: connection.by };
  const reply = await heldBack(connection, id, async () => ({ goal: codexGoal(id, await set(journal, id, change)) }));
  return {
    ...reply,
    after() {
      reply.after();
      server.goals.begin(id);
    },
  };
};

export const getGoal: Handler<"thread/goal/get"> = async ({ threadId }, { server }) => {
  const { id } = await requireKept(server, threadId, KEPT);
  const goal = await readGoal(server.heddle.journal, id);
  return { result: { goal: goal === undefined ? null : codexGoal(id, goal) } };
};

export const clearGoal: Handler<"thread/goal/clear"> = async ({ threadId }, { server, connection }) => {
  const { id } = await requireKept(server, threadId, KEPT);
  return heldBack(connection, id, async () => ({ cleared: await clear(server.heddle.journal, id, connection.by) }));
};
