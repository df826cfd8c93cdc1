/**
 * Carries out a compaction inside a turn: item, hooks, one short run for a summary, one event. Whatever fails leaves
 * the conversation as it was and says so; only an abort of the turn passes through.
 *
 *   started ─▶ PreCompact ─▶ summary ─▶ context.compacted + item ─▶ PostCompact
 *                 │no           │fails
 *                 └── declined ◀┴▶ failed: the old context stays
 */
import { HeddleError, newItemId, toHeddleError, type EventOf, type ItemOf } from "@heddle/protocol";
import type { ModelRequest, Provider } from "@heddle/models";
import { fitText } from "@heddle/tools";
import {
  carriedOver,
  planCompaction,
  tokensAfter,
  transcript,
  transcriptBytes,
  type CompactionPlan,
} from "../context/compact.ts";
import type { Context } from "../context/context.ts";
import { SUMMARY_INSTRUCTIONS } from "../context/instructions.ts";
import type { Spent, TurnIo, TurnRequest } from "./runner.ts";
import { shortAnswer, shortLimit, shortRequest } from "../side-requests/short-run.ts";
import { addSpent, NOTHING_SPENT } from "../turns/outcome.ts";
import { callerOf } from "./asker.ts";
import { askBeside, declined } from "./response.ts";

export interface CompactionContext {
  readonly provider: Provider;
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly context: Context;
  readonly windowTokens: number;
  readonly overheadTokens: number;
}

export type Trigger = EventOf<"context.compacted">["trigger"];

export type CompactionOutcome =
  | { readonly kind: "compacted"; readonly spent: Spent }
  | { readonly kind: "nothing"; readonly spent: Spent }
  | { readonly kind: "failed"; readonly error: HeddleError; readonly spent: Spent };

/** Reasoning counts as output; the summary itself has its own bound. */
const MAX_OUTPUT_TOKENS = 16_000;
/** With all retries. */
const MAX_SUMMARY_MS = 5 * 60_000;

export async function runCompaction(trigger: Trigger, given: CompactionContext): Promise<CompactionOutcome> {
  const { turn, io, context } = given;
  const { hooks, hops } = io.policy;
  const { turnId } = turn;
  const tokensBefore = context.tokens(given.overheadTokens);
  // A request that was too large shows that the window is smaller than assumed.
  const windowTokens = trigger === "overflow" ? Math.min(given.windowTokens, tokensBefore) : given.windowTokens;
  const isAsked = trigger === "manual";
  const plan =
    planCompaction(context.entries, windowTokens) ??
    (isAsked ? planCompaction(context.entries, windowTokens, { isAll: true }) : undefined);
  if (plan === undefined && !isAsked) return { kind: "nothing", spent: NOTHING_SPENT };
  const item: ItemOf<"contextCompaction"> = {
    type: "contextCompaction",
    id: newItemId(),
    trigger,
    status: "inProgress",
    tokensBefore,
  };
  await io.record([{ type: "item.started", v: 1, turnId, item }]);
  if (plan === undefined) {
    // Nothing has been said yet: whoever asked sees it done, and no model is asked.
    const done = { ...item, status: "completed", tokensAfter: tokensBefore } as const;
    await io.record([{ type: "item.completed", v: 1, turnId, item: done }]);
    return { kind: "nothing", spent: NOTHING_SPENT };
  }
  const hookTrigger = isAsked ? "manual" : "auto";
  const verdict = await hooks.run("PreCompact", { subject: hookTrigger, payload: { trigger: hookTrigger } });
  let spent: Spent = NOTHING_SPENT;
  try {
    if (verdict.isBlocked) throw new HeddleError("policy.denied", `a PreCompact hook refused: ${verdict.reason}`);
    const throughVersion = await io.seenVersion();
    using limit = shortLimit(io.signal, MAX_SUMMARY_MS);
    const request = summaryRequest(turn, plan, windowTokens);
    const answer = await askBeside(given.provider, request, turnId, { ...io, signal: limit.signal });
    spent = addSpent(spent, answer);
    const summary = summaryOf(answer, plan);
    const carried = carriedOver(context.plan, context.openCommands, (id) => isRunning(turn, id));
    const after = tokensAfter(plan, summary, carried) + given.overheadTokens;
    await io.record([
      {
        type: "context.compacted",
        v: 1,
        turnId,
        trigger,
        throughVersion,
        summary,
        ...carried,
        keptMessages: plan.keptMessages,
        ...(plan.keptFrom === undefined ? {} : { keptFrom: plan.keptFrom }),
        tokensBefore,
        tokensAfter: after,
      },
      { type: "item.completed", v: 1, turnId, item: { ...item, status: "completed", tokensAfter: after } },
    ]);
  } catch (error) {
    if (io.signal.aborted) throw error;
    const typed = toHeddleError(error);
    const status = typed.code === "policy.denied" ? "declined" : "failed";
    const message = `the context was not compacted and stays as it was: ${typed.message}`;
    await io.record([{ type: "item.completed", v: 1, turnId, item: { ...item, status, error: message } }]);
    return { kind: "failed", error: typed, spent };
  }
  if (hops.entered > 0) {
    const { envelopeNote } = await import("../context/envelope-text.ts");
    await io.record([envelopeNote(turnId, hops.current.envelope)], "system");
  }
  await hooks.run("PostCompact", { subject: hookTrigger, payload: { trigger: hookTrigger } });
  return { kind: "compacted", spent };
}

function summaryRequest(turn: TurnRequest, plan: CompactionPlan, windowTokens: number): ModelRequest {
  const { model, effort } = turn.settings;
  return shortRequest({
    model,
    instructions: SUMMARY_INSTRUCTIONS,
    data: transcript(plan.summarized, transcriptBytes(windowTokens)),
    cacheKey: turn.threadId,
    ...callerOf(turn),
    maxOutputTokens: Math.min(MAX_OUTPUT_TOKENS, Math.ceil(windowTokens / 4)),
    ...(effort === undefined ? {} : { effort }),
  });
}

function summaryOf(answer: Awaited<ReturnType<typeof askBeside>>, plan: CompactionPlan): string {
  if (answer.stopReason === "refusal") throw declined("the model declined to summarise", answer.explanation);
  return fitText(shortAnswer(answer.output), plan.maxSummaryBytes);
}

function isRunning(turn: TurnRequest, processId: string): boolean {
  return turn.sandboxContext.state.processes.get(Number(processId))?.isRunning === true;
}
