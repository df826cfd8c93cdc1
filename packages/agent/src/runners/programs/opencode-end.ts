/** How a turn of OpenCode ends: after the last word of its messages, and as what became of them. */
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { NativeOutcome } from "./conversation.ts";
import type { OpenCodeItems } from "./opencode-items.ts";
import type { Joined } from "./opencode-live.ts";
import { codeOfStatus } from "./provider-status.ts";

export const ErrorNews = z.object({
  error: z
    .object({
      name: z.string(),
      data: z.looseObject({ message: z.string().optional(), statusCode: z.number().optional() }).optional(),
    })
    .optional(),
});
type NativeError = NonNullable<z.infer<typeof ErrorNews>["error"]>;

export interface State {
  sessionId: string;
  /** Of the agents that it has started itself. */
  readonly children: Set<string>;
  /** Messages of the agent in this turn; those that were copied or said before are not among them. */
  readonly messages: Map<string, { isOver: boolean }>;
  /** Undefined: it works on nothing. */
  ended: PromiseWithResolvers<NativeOutcome> | undefined;
  error: NativeError | undefined;
  finish: string | undefined;
  model: string | undefined;
  retries: number;
  lastRetry: string;
  /** Answers in a row that broke off. */
  cut: number;
  /** Nothing is worked on, and the turn waits for the person who has joined. */
  isHeld: boolean;
  settling: NodeJS.Timeout | undefined;
}

interface Ending {
  readonly items: OpenCodeItems;
  readonly state: State;
  readonly settleMs: number;
  readonly joined: Joined;
}

/** The first idle of a turn that failed comes before the last words of its message, and a second idle after them. */
export function createEnd({ items, state, settleMs, joined }: Ending) {
  async function now(): Promise<void> {
    clearTimeout(state.settling);
    state.settling = undefined;
    const { ended } = state;
    if (ended === undefined) return;
    state.isHeld = joined.isThere;
    if (state.isHeld) return;
    state.ended = undefined;
    await items.endTexts();
    ended.resolve(outcomeOf(state, items));
    state.messages.clear();
  }

  return {
    now,
    async idle(): Promise<void> {
      // The second idle of what has ended.
      if (state.ended === undefined || (state.messages.size === 0 && state.error === undefined)) return;
      const isWhole = [...state.messages.values()].every(({ isOver }) => isOver);
      if (state.error === undefined || isWhole) return now();
      const { ended } = state;
      state.settling ??= setTimeout(() => void now().catch((error: unknown) => ended.reject(error)), settleMs);
    },
  };
}

function outcomeOf({ error, finish = "idle" }: State, items: OpenCodeItems): NativeOutcome {
  if (error?.name === "MessageAbortedError")
    return { kind: "interrupted", native: { reason: error.name, confidence: "certain" } };
  if (error !== undefined) return { kind: "failed", error: failure(error) };
  // A server that was ended while a call ran says idle too.
  if (items.openCalls.length > 0)
    return { kind: "failed", error: new HeddleError("runner.failed", "opencode stopped while a call of it ran") };
  const confidence = items.hasAny ? (finish === "stop" ? "certain" : "likely") : "unsure";
  return { kind: "completed", native: { reason: finish, confidence } };
}

function failure({ name, data }: NativeError): HeddleError {
  return new HeddleError(codeOf(name, data?.statusCode), `opencode: ${data?.message ?? name}`);
}

function codeOf(name: string, status: number | undefined): HeddleError["code"] {
  if (name === "ProviderAuthError" || status === 401 || status === 403) return "auth.rejected";
  if (name === "ContextOverflowError") return "provider.context-exceeded";
  if (name !== "APIError") return "runner.failed";
  return status === undefined ? "provider.unreachable" : codeOfStatus(status);
}
