/** What a turn was admitted with, and who asked for it. */
import { HeddleError, type By, type EventOf } from "@heddle/protocol";
import type { TurnRequest } from "../runners/runner.ts";

export function admissionOf({
  history,
  turnId,
}: Pick<TurnRequest, "history" | "turnId">): EventOf<"turn.admitted"> & By {
  const admitted = history.findLast(({ body }) => body.type === "turn.admitted" && body.turnId === turnId);
  if (admitted?.body.type !== "turn.admitted") throw new HeddleError("internal", `turn ${turnId} was never admitted`);
  return { ...admitted.body, by: admitted.author };
}
