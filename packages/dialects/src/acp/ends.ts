/** How a turn ended, as the answer to the prompt that began it. */
import type { EventOf, Usage } from "@heddle/protocol";
import type { AcpEnd, AcpStopReason, AcpUsage } from "./shapes.ts";

type Ended = Pick<EventOf<"turn.completed">, "status" | "failure" | "usage">;

/** `stopReason`: of the last answer of the model. */
export function endOf({ status, failure, usage }: Ended, stopReason: string | undefined): AcpEnd {
  const stopped = (reason: AcpStopReason): AcpEnd => ({ kind: "stopped", stopReason: reason, usage: usageOf(usage) });
  if (status === "completed") return stopped("end_turn");
  if (status === "interrupted") return stopped("cancelled");
  const known = failure ?? { code: "internal", message: "the turn has failed" };
  if (known.code === "provider.refused") return stopped("refusal");
  if (known.code !== "limit.reached") return { kind: "failed", failure: known };
  return stopped(stopReason === "length" ? "max_tokens" : "max_turn_requests");
}

/** Heddle's input counts what came from a cache; the protocol's does not. */
function usageOf(usage: Usage): AcpUsage {
  const { inputTokens, cachedInputTokens, cacheWriteInputTokens, outputTokens, reasoningOutputTokens } = usage;
  return {
    totalTokens: inputTokens + outputTokens,
    inputTokens: inputTokens - cachedInputTokens - cacheWriteInputTokens,
    outputTokens,
    cachedReadTokens: cachedInputTokens,
    cachedWriteTokens: cacheWriteInputTokens,
    thoughtTokens: reasoningOutputTokens,
  };
}
