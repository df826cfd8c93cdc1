/**
 * The reasons to stop of Chat Completions and of Anthropic Messages: gateways mix them. Only a known reason makes an answer
 * complete; half an answer is never a success.
 */
import type { Ending } from "../requests/answer.ts";
import { ProviderError, quote } from "../requests/failure.ts";
import type { Provider } from "../providers/providers.ts";

const ENDINGS: Readonly<Record<string, Ending["stopReason"]>> = {
  stop: "end",
  tool_calls: "end",
  function_call: "end",
  tool_use: "end",
  end_turn: "end",
  stop_sequence: "end",
  eos: "end",
  eos_token: "end",
  normal: "end",
  complete: "end",
  completed: "end",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  model_context_window_exceeded: "length",
  content_filter: "refusal",
  refusal: "refusal",
  safety: "refusal",
  sensitive: "refusal",
  pause_turn: "pause",
};

/** Throws when the reason is unknown or missing. Some servers add details after a colon. */
export function endingIn(provider: Provider, field: string, reason: string | undefined): Ending["stopReason"] {
  const word = /^[a-z_]*/.exec(reason?.toLowerCase() ?? "")?.[0] ?? "";
  const ending = Object.hasOwn(ENDINGS, word) ? ENDINGS[word] : undefined;
  if (ending === undefined) throw brokenOff(provider, field, reason);
  return ending;
}

/** Servers end an answer that they cannot finish with a reason of their own, or with none; another try may succeed. */
export function brokenOff(provider: Provider, field: string, reason: string | undefined): ProviderError {
  const word = quote(provider, reason ?? "");
  const what = word === "" ? `no ${field}` : `${field} ${word}`;
  return new ProviderError("provider.cut", `${provider.name} broke its answer off: ${what}`, {
    isRetryable: true,
    details: { finishReason: word },
  });
}
