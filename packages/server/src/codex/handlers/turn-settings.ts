/** `turn/settings/update`: how a running turn asks its model from the next request on, and who is asked by it. */
import { defined, isHeddleError, ReasoningSummary } from "@heddle/protocol";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { refuse, requireLoaded } from "../thread-facts.ts";

const FEATURE = "step_model_switching";

/** The only reviewer here is whoever follows the thread. The rest is a feature that is off unless the owner turns it on, as in the original. */
export const updateTurnSettings: Handler<"turn/settings/update"> = async (params, { server, connection }) => {
  const { threadId, turnId, approvalsReviewer, effort, model, serviceTier, summary, ...others } = params;
  if (effort === "") throw refuse("Invalid request: reasoning_effort must not be empty");
  const loaded = requireLoaded(server, threadId);
  const isMore = [effort, model, serviceTier, summary, ...Object.values(others)].some((value) => value !== undefined);
  if ((isMore || (approvalsReviewer ?? undefined) === undefined) && !(await isSwitchedOn(server))) {
    throw refuse(`turn settings updates require the ${FEATURE} feature; use thread/settings/update`);
  }
  if ((approvalsReviewer ?? "user") !== "user")
    throw refuse("no model reviews approvals here: approvalsReviewer is `user`");
  if (typeof model === "string") throw refuse("a running turn keeps its model; use thread/settings/update");
  const last = await server.heddle.journal.threads.lastTurn(loaded.threadId);
  if (last?.id !== turnId || last.status !== "open") return { result: { status: "targetUnavailable" } };
  const change = {
    ...defined({ effort: effort ?? undefined, serviceTier }),
    ...defined({ summary: ReasoningSummary.safeParse(summary).data }),
  };
  if (Object.keys(change).length === 0) return { result: { status: "applied" } };
  try {
    await server.heddle.as(connection.by).changeTurn(turnId, change);
    return { result: { status: "applied" } };
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
    return { result: { status: "targetUnavailable" } };
  }
};

async function isSwitchedOn({ host }: ServerContext): Promise<boolean> {
  const features: unknown = (await host.config?.read())?.config["features"];
  return typeof features === "object" && features !== null && FEATURE in features && features[FEATURE] === true;
}
