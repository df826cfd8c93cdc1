/**
 * One function for every model: `streamModel(provider, request, { signal })` yields ModelEvents and ends with exactly one
 * `completed`, or throws a HeddleError with a `provider.*` or `auth.*` code. Retries are bounded in total and visible.
 */
import type { Failure, InputPart, ModelOutputPart, Usage } from "@heddle/protocol";

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** `freeform` tools take bare text where the wire knows that; elsewhere they become one string field `input`. */
  readonly shape: "json" | "freeform";
  /** JSON Schema of the arguments, for `json`. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export type ModelInput =
  | { readonly kind: "user"; readonly parts: readonly InputPart[] }
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
  readonly instructions: string;
  readonly input: readonly ModelInput[];
  readonly tools: readonly ToolSpec[];
  readonly effort?: string;
  readonly outputSchema?: unknown;
  /** The thread id; lets a provider find its prompt cache. */
  readonly cacheKey: string;
  readonly maxOutputTokens?: number;
}

export type StopReason = "end" | "toolCalls" | "length" | "refusal";

export type ModelEvent =
  /** The request is on its way; once an attempt. */
  | { readonly type: "requested"; readonly attempt: number; readonly requestBytes: number }
  /** An attempt failed and another follows. Deltas already seen belong to the failed attempt. */
  | {
      readonly type: "retrying";
      readonly attempt: number;
      readonly maxAttempts: number;
      readonly delayMs: number;
      readonly cause: Failure;
    }
  /** `index` tells parts of one response apart; a part's deltas concatenate to its text. */
  | { readonly type: "text.delta"; readonly index: number; readonly delta: string }
  | {
      readonly type: "reasoning.delta";
      readonly index: number;
      readonly channel: "summary" | "text";
      readonly section: number;
      readonly delta: string;
    }
  /** A part is whole. `index` as in its deltas. */
  | { readonly type: "part"; readonly index: number; readonly part: ModelOutputPart }
  | {
      readonly type: "completed";
      readonly output: readonly ModelOutputPart[];
      readonly stopReason: StopReason;
      readonly usage: Usage;
      /** Absent when the price of the model is not known. */
      readonly costUsd?: number;
    };
