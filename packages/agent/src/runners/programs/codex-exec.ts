/**
 * Codex over `codex exec --json`: a process for each prompt, which is given its prompt on its input, prints JSON lines and
 * exits. It takes nothing while it runs and cannot ask. Heddle's sandbox holds it, so it is started without its own.
 */
import { HeddleError, NO_USAGE, reasonOf, type Usage } from "@heddle/protocol";
import { z } from "zod";
import { capabilities } from "../abilities.ts";
import { createCodexExecItems, type CodexExecItems, type ItemStage } from "./codex-exec-items.ts";
import {
  ConversationLost,
  originOf,
  type Conversation,
  type Dialect,
  type LaunchedTurn,
  type NativeOutcome,
  type ProgramTurn,
  type Wire,
} from "./conversation.ts";
import { textOf } from "../../context/compacted-context.ts";

export const codexExecDialect: Dialect = {
  capabilities: capabilities("outputSchema", "resume", "models", "effort", "reasoning", "plan"),
  isPerPrompt: true,
  launch: (turn) => ({ args: launchArgs(turn), variables: {} }),
  open,
};

/** After those that make it print JSON lines. Options come before `resume`. */
function launchArgs({ settings, model, handle }: LaunchedTurn): readonly string[] {
  const { effort } = settings;
  return [
    "--skip-git-repo-check",
    "--sandbox",
    "danger-full-access",
    "--config",
    'approval_policy="never"',
    ...(effort === undefined ? [] : ["--config", `model_reasoning_effort=${JSON.stringify(effort)}`]),
    ...(model === undefined ? [] : ["--model", model]),
    ...(handle === undefined ? [] : ["resume", handle.id]),
  ];
}

const count = z.number().default(0);
const Line = z.discriminatedUnion("type", [
  z.object({ type: z.literal("thread.started"), thread_id: z.string() }),
  z.object({ type: z.literal("turn.started") }),
  z.object({ type: z.literal("item.started"), item: z.unknown() }),
  z.object({ type: z.literal("item.updated"), item: z.unknown() }),
  z.object({ type: z.literal("item.completed"), item: z.unknown() }),
  z.object({
    type: z.literal("turn.completed"),
    usage: z
      .object({
        input_tokens: count,
        cached_input_tokens: count,
        cache_write_input_tokens: count,
        output_tokens: count,
        reasoning_output_tokens: count,
      })
      .optional(),
  }),
  z.object({ type: z.literal("turn.failed"), error: z.object({ message: z.string() }) }),
  z.object({ type: z.literal("error"), message: z.string() }),
]);
type Line = z.infer<typeof Line>;
const Named = z.object({ type: z.string() });

/** Of a model that cannot be reached it says so for ever. Its own settings allow for fewer. */
const MAX_RECONNECTS = 30;

interface State {
  readonly ended: PromiseWithResolvers<NativeOutcome>;
  readonly items: CodexExecItems;
  threadId: string | undefined;
  /** Of its attempts to reach its model, one after the other. */
  reconnects: number;
  lastError: string;
  isOver: boolean;
}

function open(wire: Wire, turn: ProgramTurn): Conversation {
  const ended = Promise.withResolvers<NativeOutcome>();
  ended.promise.catch(() => undefined);
  const items = createCodexExecItems(turn);
  const state: State = { ended, items, threadId: undefined, reconnects: 0, lastError: "", isOver: false };
  return {
    begin: () => Promise.resolve("knows"),
    async receive(message) {
      const found = Line.safeParse(message);
      if (!found.success) return turn.unknown(Named.safeParse(message).data?.type ?? "malformed");
      return hear(found.data, turn, state);
    },
    async prompt(input, told) {
      await wire.finish([...(told === undefined ? [] : [told]), textOf(input)].join("\n\n"));
      return ended.promise;
    },
    steer: () => Promise.resolve(false),
    // It has no other way than a signal, after which it says nothing.
    async interrupt() {
      ended.resolve({ kind: "interrupted", native: { reason: "signal", confidence: "certain" } });
    },
    lost(error) {
      const isUnknown = turn.handle !== undefined && state.threadId === undefined && !state.isOver;
      const found = isUnknown ? new ConversationLost(reasonOf(error)) : error;
      ended.reject(found);
      return found;
    },
    get isOver() {
      return state.isOver;
    },
  };
}

async function hear(line: Line, turn: ProgramTurn, state: State): Promise<void> {
  const { items, ended } = state;
  if (line.type !== "error") state.reconnects = 0;
  switch (line.type) {
    case "thread.started":
      return entered(line.thread_id, turn, state);
    case "turn.started":
      return undefined;
    case "item.started":
    case "item.updated":
    case "item.completed":
      return items.heard(STAGES[line.type], line.item);
    case "turn.completed": {
      state.isOver = true;
      await spent(turn, items, line.usage === undefined ? undefined : usageOf(line.usage));
      const confidence = items.hasAny ? "certain" : "unsure";
      return ended.resolve({ kind: "completed", native: { reason: "turn.completed", confidence } });
    }
    case "turn.failed":
      state.isOver = true;
      await spent(turn, items, undefined);
      return ended.resolve({ kind: "failed", error: failure(line.error.message) });
    case "error":
      return troubled(line.message, turn, state);
  }
}

const STAGES: Readonly<Record<"item.started" | "item.updated" | "item.completed", ItemStage>> = {
  "item.started": "started",
  "item.updated": "updated",
  "item.completed": "completed",
};

/** A name that it does not know begins another conversation, without a word about it. */
async function entered(threadId: string, turn: ProgramTurn, state: State): Promise<void> {
  state.threadId = threadId;
  const { handle } = turn;
  // Nothing that it says after that is read.
  if (handle !== undefined && handle.id !== threadId)
    throw new ConversationLost(`it has begun another conversation in place of ${handle.id}`);
  return turn.connected({ handle: threadId, origin: originOf(turn), model: turn.model });
}

async function troubled(message: string, turn: ProgramTurn, state: State): Promise<void> {
  state.reconnects += 1;
  if (state.reconnects >= MAX_RECONNECTS) {
    state.ended.resolve({ kind: "failed", error: new HeddleError("provider.unreachable", `codex: ${message}`) });
    return;
  }
  // The last of them is the failure of the turn, told again.
  if (message === state.lastError || !RETRIES.test(message)) return;
  state.lastError = message;
  await turn.warn("provider.unreachable", message);
}

const RETRIES = /^reconnecting/i;

/** What was said is kept for whoever continues the thread, also where nothing was counted. */
async function spent(turn: ProgramTurn, items: CodexExecItems, total: Usage | undefined): Promise<void> {
  const text = items.takeText();
  if (text === "" && total === undefined) return;
  const usage = total === undefined ? NO_USAGE : since(turn.countedBefore, total);
  await turn.spent({ model: turn.model, text, stopReason: "stop", usage });
}

type Counted = NonNullable<Extract<Line, { type: "turn.completed" }>["usage"]>;

function usageOf(counted: Counted): Usage {
  return {
    inputTokens: counted.input_tokens,
    cachedInputTokens: counted.cached_input_tokens,
    cacheWriteInputTokens: counted.cache_write_input_tokens,
    outputTokens: counted.output_tokens,
    reasoningOutputTokens: counted.reasoning_output_tokens,
  };
}

const COUNTS = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteInputTokens",
  "outputTokens",
  "reasoningOutputTokens",
] as const;

/** It counts over all turns of a conversation. Less than before: it has begun to count anew. */
function since(before: Usage | undefined, total: Usage): Usage {
  if (before === undefined || COUNTS.some((key) => total[key] < before[key])) return total;
  const left = COUNTS.map((key) => [key, total[key] - before[key]] as const);
  return { ...total, ...Object.fromEntries(left) };
}

/** It says no more than a text for people. */
const CODES: readonly (readonly [RegExp, HeddleError["code"]])[] = [
  [/high demand|overloaded/i, "provider.overloaded"],
  [/usage limit|rate limit|too many requests|\b429\b/i, "provider.rate-limited"],
  [/unauthorized|\b401\b|missing environment variable|not logged in/i, "auth.rejected"],
  [/context (?:length|window)/i, "provider.context-exceeded"],
  [/stream disconnected/i, "provider.cut"],
  [/error sending request|network|connection/i, "provider.unreachable"],
];

function failure(message: string): HeddleError {
  const code = CODES.find(([pattern]) => pattern.test(message))?.[1] ?? "provider.rejected";
  return new HeddleError(code, `codex: ${message}`);
}
