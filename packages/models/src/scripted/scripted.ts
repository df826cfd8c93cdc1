/**
 * The offline model: plays its script behind the same interface as every other provider, retries included.
 * It reads nothing but the number of answers in the request, so the same request always gets the same answer.
 */
import { defined, isRetryable, NO_USAGE, type ModelOutputPart, type Usage } from "@heddle/protocol";
import { Answer, type AnswerEvent } from "../requests/answer.ts";
import type { Attempts, Source } from "../requests/attempt.ts";
import { ProviderError } from "../requests/failure.ts";
import type { Provider } from "../providers/providers.ts";
import { pause } from "../requests/retry.ts";
import { partsOf, stepAt, type ScriptStep } from "./script.ts";
import type { ModelRequest } from "../requests/stream.ts";
import { shapesOf } from "../wire/calls.ts";

/** About as much as a model sends at a time. */
const DELTA_CHARS = 24;
const CHARS_PER_TOKEN = 4;

export async function prepareScripted(provider: Provider, request: ModelRequest): Promise<Attempts> {
  const script = await provider.script();
  const index = request.input.filter((entry) => entry.kind === "assistant").length;
  const step = stepAt(script, index);
  const requestBytes = Buffer.byteLength(JSON.stringify([request.instructions, request.tools, request.input]));
  return {
    requestBytes,
    open: async ({ attempt, signal, progress }) => {
      if (step.delayMs !== undefined) await pause(step.delayMs, signal);
      throwFailure(step, attempt, index);
      return play(step, request, { index, requestBytes, answer: new Answer(progress) });
    },
  };
}

function throwFailure({ fail }: ScriptStep, attempt: number, index: number): void {
  if (fail === undefined || (fail.times !== undefined && attempt > fail.times)) return;
  const message = fail.message ?? `step ${index + 1} of the script fails here`;
  throw new ProviderError(fail.code, message, { isRetryable: isRetryable(fail.code) });
}

function play(
  step: ScriptStep,
  request: ModelRequest,
  { answer, index, requestBytes }: { index: number; requestBytes: number; answer: Answer },
): Source {
  const parts = partsOf(step, shapesOf(request), (call) => `call_${index + 1}_${call + 1}`);
  const rest = parts.entries();
  return {
    // One part at a time, so that a reader sees them arrive.
    read: async (): Promise<readonly AnswerEvent[]> => {
      const next = rest.next();
      if (next.done === true) answer.finish({ stopReason: "end", usage: usageOf(step, parts, requestBytes) });
      else playPart(answer, ...next.value);
      return answer.take();
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function playPart(answer: Answer, index: number, part: ModelOutputPart): void {
  if (part.kind === "text") for (const delta of slices(part.text)) answer.text(index, delta);
  if (part.kind === "reasoning") {
    for (const [section, summary] of part.summary.entries()) {
      for (const delta of slices(summary)) answer.reasoning(index, delta, { channel: "summary", section });
    }
  }
  answer.part(index, part);
}

/** Cuts a text into deltas, never inside a surrogate pair. */
export function slices(whole: string, size: number = DELTA_CHARS): string[] {
  const parts: string[] = [];
  for (let start = 0; start < whole.length;) {
    const isPairCut = /[\uD800-\uDBFF]$/.test(whole.slice(start, start + size));
    const end = start + size + (isPairCut ? 1 : 0);
    parts.push(whole.slice(start, end));
    start = end;
  }
  return parts;
}

/** A script without figures gets an estimate by length. */
function usageOf(step: ScriptStep, parts: readonly ModelOutputPart[], requestBytes: number): Usage {
  const { usage = {} } = step;
  const written = parts.reduce((sum, part) => sum + lengthOf(part), 0);
  return {
    ...NO_USAGE,
    inputTokens: Math.ceil(requestBytes / CHARS_PER_TOKEN),
    outputTokens: Math.ceil(written / CHARS_PER_TOKEN),
    reasoningOutputTokens: Math.ceil((step.reasoning ?? "").length / CHARS_PER_TOKEN),
    ...defined(usage),
  };
}

function lengthOf(part: ModelOutputPart): number {
  if (part.kind === "text") return part.text.length;
  return part.kind === "reasoning" ? part.summary.join("").length : part.name.length + part.input.length;
}
