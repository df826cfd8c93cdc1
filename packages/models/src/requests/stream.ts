/**
 * One function for every model: `streamModel(provider, request, { signal })` yields ModelEvents and ends with exactly one
 * `completed`, or throws a HeddleError with a `provider.*`, `auth.*` or `model.*` code (`turn.interrupted` after an abort).
 * Only this function retries: an answer is requested at most `limits.maxAttempts` times, each time with at most
 * `limits.requestAttempts` requests until it begins, never with more than `maxRequests` in all, and no longer than
 * `MAX_QUIET_MS` after the model was last heard of; each retry is an event.
 */
import {
  clockMs,
  defined,
  toHeddleError,
  type Failure,
  type InputPart,
  type MessagePhase,
  type ModelOutputPart,
  type ReasoningSummary,
  type SearchKind,
  type SearchOptions,
  type Usage,
  type Verbosity,
} from "@heddle/protocol";
import type { Answered, RequestProgress, Skipped } from "./answer.ts";
import { prepareAttempts } from "./attempt.ts";
import { modelInfo } from "../catalog/catalog.ts";
import { clean } from "./failure.ts";
import { costOf } from "../catalog/price.ts";
import { maxRequests, type Provider } from "../providers/providers.ts";
import { asFailure, pause, planRetry } from "./retry.ts";

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** `freeform` tools take plain text where the wire supports that; elsewhere they have one string field `input`. */
  readonly shape: "json" | "freeform";
  /** JSON Schema of the arguments, for `json`. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export type ModelInput =
  /** `developer`: text that the client vouches for. Where a wire has no such role it is text of the user. */
  | { readonly kind: "user"; readonly role?: "developer"; readonly parts: readonly InputPart[] }
  | { readonly kind: "assistant"; readonly parts: readonly ModelOutputPart[] }
  | {
      readonly kind: "toolResult";
      readonly callId: string;
      readonly name: string;
      readonly shape: "json" | "freeform";
      readonly isError: boolean;
      readonly parts: readonly InputPart[];
    };

export interface ModelRequest {
  readonly model: string;
  /** Empty: none. */
  readonly instructions: string;
  /** Beside them, from whoever runs the agent. */
  readonly developerInstructions?: string;
  readonly input: readonly ModelInput[];
  readonly tools: readonly ToolSpec[];
  readonly effort?: string;
  readonly verbosity?: Verbosity;
  readonly summary?: ReasoningSummary;
  readonly serviceTier?: string;
  readonly webSearch?: SearchKind;
  readonly searchOptions?: SearchOptions;
  readonly outputSchema?: unknown;
  /** The thread id; lets a provider find its prompt cache. */
  readonly cacheKey: string;
  readonly maxOutputTokens?: number;
  /** The program that uses Heddle, by the name it gave itself; the provider is told. */
  readonly caller?: string;
}

/** `pause`: the provider goes on with the answer once it is sent back. */
export type StopReason = "end" | "toolCalls" | "length" | "refusal" | "pause";

export type ModelEvent =
  /** Once per attempt. */
  | { readonly type: "requested"; readonly attempt: number; readonly requestBytes: number }
  /** An attempt failed and another follows. Deltas already seen belong to the failed attempt. */
  | {
      readonly type: "retrying";
      /** Requests so far. */
      readonly attempt: number;
      /** Of requests. */
      readonly maxAttempts: number;
      /** `request`: no answer had begun, and the request is sent again. `stream`: a new answer is requested. */
      readonly level: "request" | "stream";
      /** Of requests for an answer. */
      readonly round: number;
      readonly maxRounds: number;
      readonly delayMs: number;
      readonly cause: Failure;
    }
  /** `index` tells parts of one response apart; a part's deltas concatenate to its text. */
  | {
      readonly type: "text.delta";
      readonly index: number;
      readonly delta: string;
      /** Where the model says it before its text. */
      readonly phase?: MessagePhase;
    }
  | {
      readonly type: "reasoning.delta";
      readonly index: number;
      readonly channel: "summary" | "text";
      readonly section: number;
      readonly delta: string;
    }
  /** A part is complete. `index` as in its deltas. */
  | { readonly type: "part"; readonly index: number; readonly part: ModelOutputPart }
  | {
      readonly type: "completed";
      readonly output: readonly ModelOutputPart[];
      readonly stopReason: StopReason;
      /** Of a refusal: the reason that the provider gives, safe to show. */
      readonly explanation?: string;
      readonly usage: Usage;
      /** Absent when the price of the model or its usage is not known. */
      readonly costUsd?: number;
      /** Events that could not be read; the answer is complete without them. */
      readonly skipped?: Skipped;
    };

/** A provider that says nothing for so long, however often it is asked, is down for this turn. */
const MAX_QUIET_MS = 10 * 60_000;

export interface StreamOptions {
  /** Abort ends the request within 100 ms in any state: the socket is destroyed, a retry pause is cut short. */
  readonly signal: AbortSignal;
  /** For the jitter of retry pauses, 0 ≤ x < 1. */
  readonly random?: () => number;
  readonly progress?: RequestProgress | undefined;
  /** Milliseconds. */
  readonly now?: () => number;
}

export async function* streamModel(
  provider: Provider,
  request: ModelRequest,
  options: StreamOptions,
): AsyncGenerator<ModelEvent, void, void> {
  const { signal, random = Math.random, progress, now = clockMs } = options;
  const { maxAttempts: maxRounds, requestAttempts: maxSent, retryBaseMs: baseMs } = provider.limits;
  const maxAttempts = maxRequests(provider.limits);
  throwIfAborted(signal);
  const attempts = await prepareAttempts(provider, request);
  let round = 1;
  let sent = 0;
  let heardAt = now();
  for (let attempt = 1; ; attempt += 1) {
    sent += 1;
    throwIfAborted(signal);
    yield { type: "requested", attempt, requestBytes: attempts.requestBytes };
    let retry: { readonly level: "request" | "stream"; readonly delayMs: number; readonly cause: Failure };
    try {
      await using source = await attempts.open({ attempt, signal, progress });
      for (;;) {
        for (const event of await source.read()) {
          heardAt = now();
          if (event.type !== "answered") {
            yield event;
            continue;
          }
          yield completed(provider, request.model, event);
          return;
        }
      }
    } catch (error) {
      throwIfAborted(signal);
      const isLast = attempt >= maxAttempts || now() - heardAt >= MAX_QUIET_MS;
      const bounds = isLast ? { maxRounds: round, maxSent: sent } : { maxRounds, maxSent };
      const plan = planRetry(error, { attempt, round, sent, ...bounds, baseMs, random });
      if (plan.kind === "give-up") throw plan.error;
      retry = { level: plan.level, delayMs: plan.delayMs, cause: asFailure(plan.error) };
    }
    yield { type: "retrying", attempt, maxAttempts, round, maxRounds, ...retry };
    if (retry.level === "stream") {
      round += 1;
      sent = 0;
    }
    // An abort is thrown at the top of the loop.
    await pause(retry.delayMs, signal).catch(() => undefined);
  }
}

function completed(provider: Provider, model: string, answered: Answered): ModelEvent {
  const { output, stopReason, explanation, usage, skipped } = answered;
  const costUsd = answered.isUsageKnown ? costOf(usage, modelInfo(provider, model)) : undefined;
  return {
    type: "completed",
    output,
    stopReason,
    usage,
    ...defined({ explanation: explanation && clean(provider, explanation), costUsd, skipped }),
  };
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw toHeddleError(signal.reason, "turn.interrupted");
}
