/** `turn/settings/update`: who is asked by a running turn. What it runs with otherwise is settled when it begins. */
import type { Handler } from "../../rpc/call.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

/** The only reviewer here is whoever follows the thread; the answer tells whether the turn is there to be asked by. */
export const updateTurnSettings: Handler<"turn/settings/update"> = async (params, { server }) => {
  const { threadId, turnId, approvalsReviewer, effort, ...others } = params;
  if (effort === "") throw refuse("Invalid request: reasoning_effort must not be empty");
  const loaded = requireLoaded(server, threadId);
  const isMore = [effort, ...Object.values(others)].some((value) => value !== undefined);
  if (isMore || (approvalsReviewer ?? undefined) === undefined) {
    throw refuse("turn settings updates require the step_model_switching feature; use thread/settings/update");
  }
  if (approvalsReviewer !== "user") throw refuse("no model reviews approvals here: approvalsReviewer is `user`");
  const last = await server.heddle.journal.threads.lastTurn(loaded.threadId);
  const isRunning = last?.id === turnId && last.status === "open";
  return { result: { status: isRunning ? "applied" : "targetUnavailable" } };
};
