/** `turn/settings/update`: which model a running turn asks from its next request on, and how, and who is asked by it. */
import { defined, isHeddleError, ReasoningSummary } from "@heddle/protocol";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

const FEATURE = "step_model_switching";

/** The only reviewer here is whoever follows the thread. The rest is a feature that the owner or whoever starts the thread turns on, as in the original. */
export const updateTurnSettings: Handler<"turn/settings/update"> = async (params, { server, connection }) => {
  const { threadId, turnId, approvalsReviewer, effort, model, serviceTier, summary, ...others } = params;
  if (effort === "") throw refuse("Invalid request: reasoning_effort must not be empty");
  const loaded = requireLoaded(server, threadId);
  const isMore = [effort, model, serviceTier, summary, ...Object.values(others)].some((value) => value !== undefined);
  if (
    (isMore || (approvalsReviewer ?? undefined) === undefined) &&
    !(loaded.changesTurns ?? (await isSwitchedOn(server)))
  ) {
    throw refuse(`turn settings updates require the ${FEATURE} feature; use thread/settings/update`);
  }
  if ((approvalsReviewer ?? "user") !== "user")
    throw refuse("no model reviews approvals here: approvalsReviewer is `user`");
  const last = await server.heddle.journal.threads.lastTurn(loaded.threadId);
  if (last?.id !== turnId || last.status !== "open") return { result: { status: "targetUnavailable" } };
  const change = {
    ...defined({ model: model ?? undefined, effort: effort ?? undefined, serviceTier }),
    ...defined({ summary: ReasoningSummary.safeParse(summary).data }),
  };
  if (Object.keys(change).length === 0) return { result: { status: "applied" } };
  try {
    await server.heddle.as(connection.by).changeTurn(turnId, change);
    return { result: { status: "applied" } };
  } catch (error) {
    if (isHeddleError(error) && error.code === "model.unknown")
      throw refuse("the destination model has only fallback metadata");
    if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
    return { result: { status: "targetUnavailable" } };
  }
};

async function isSwitchedOn({ host }: ServerContext): Promise<boolean> {
  const features: unknown = (await host.config?.read())?.config["features"];
  return typeof features === "object" && features !== null && FEATURE in features && features[FEATURE] === true;
}
