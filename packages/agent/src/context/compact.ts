/**
 * Decides a compaction: what stays word for word, what only the summary keeps, and what the model is asked for it. Pure.
 * The shares add up to less than half of the window, so that a compacted thread has room to work in.
 *
 *   surroundings │ newest messages of the user │ summary, plan, open commands │ newest answers and results
 */
import type { EventOf, ModelOutputPart, PlanStep } from "@heddle/protocol";
import { fitText } from "@heddle/tools";
import { summaryText, textOf } from "./compacted-context.ts";
import type { ContextEntry } from "./context-entry.ts";
import { BYTES_A_TOKEN, textTokens } from "./context-size.ts";

const MESSAGE_SHARE = 0.1;
const SUMMARY_SHARE = 0.1;
const TAIL_SHARE = 0.2;
/** Enough, even in a window of a million tokens. */
const MAX_MESSAGE_TOKENS = 20_000;
const MAX_SUMMARY_TOKENS = 10_000;
const MAX_TAIL_TOKENS = 40_000;
const MIN_MESSAGE_TOKENS = 100;
/** Share of the window for the request that asks for the summary. */
const TRANSCRIPT_SHARE = 0.6;
const MAX_OPEN_COMMANDS = 16;
const MAX_COMMAND_BYTES = 200;
const MAX_PLAN_STEPS = 50;
const MAX_STEP_BYTES = 300;

export interface CompactionPlan {
  readonly keptMessages: EventOf<"context.compacted">["keptMessages"];
  readonly keptFrom: string | undefined;
  /** What the summary has to cover, oldest first. */
  readonly summarized: readonly ContextEntry[];
  readonly keptTokens: number;
  readonly maxSummaryBytes: number;
}

/** undefined: there is nothing to leave out. `isAll`: it was asked for, also where everything would fit. */
export function planCompaction(
  entries: readonly ContextEntry[],
  windowTokens: number,
  { isAll = false }: { readonly isAll?: boolean } = {},
): CompactionPlan | undefined {
  const tailTokens = Math.min(MAX_TAIL_TOKENS, Math.floor(windowTokens * TAIL_SHARE));
  const cut = isAll ? entries.length : tailCut(entries, tailTokens);
  const summarized = entries.slice(0, cut).filter(({ role }) => role !== "surroundings");
  const messageTokens = Math.min(MAX_MESSAGE_TOKENS, Math.floor(windowTokens * MESSAGE_SHARE));
  const { keptMessages, tokens } = newestMessages(summarized, messageTokens);
  const whole = new Set(keptMessages.filter(({ maxBytes }) => maxBytes === undefined).map(({ name }) => name));
  const isKeptWhole = summarized.every(({ name }) => name !== undefined && whole.has(name));
  if (isKeptWhole && !(isAll && summarized.length > 0)) return undefined;
  const surroundings = entries.findLast(({ role }) => role === "surroundings")?.tokens ?? 0;
  const tail = entries.slice(cut).filter(({ role }) => role !== "surroundings");
  return {
    keptMessages,
    keptFrom: entries[cut]?.name,
    summarized,
    keptTokens: tail.reduce((total, entry) => total + entry.tokens, surroundings + tokens),
    maxSummaryBytes: BYTES_A_TOKEN * Math.min(MAX_SUMMARY_TOKENS, Math.floor(windowTokens * SUMMARY_SHARE)),
  };
}

/** The earliest message or answer from which on everything fits. An older summary is not part of the tail. */
function tailCut(entries: readonly ContextEntry[], maxTokens: number): number {
  let cut = entries.length;
  let tokens = 0;
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (entry === undefined || entry.role === "summary") break;
    if (entry.role === "surroundings") continue;
    tokens += entry.tokens;
    if (tokens > maxTokens) break;
    if (entry.name !== undefined) cut = index;
  }
  return cut;
}

function newestMessages(
  summarized: readonly ContextEntry[],
  maxTokens: number,
): { keptMessages: CompactionPlan["keptMessages"]; tokens: number } {
  const keptMessages: CompactionPlan["keptMessages"] = [];
  let tokens = 0;
  for (const entry of summarized.toReversed()) {
    if (entry.role !== "message" || entry.name === undefined) continue;
    const left = maxTokens - tokens;
    if (entry.tokens <= left) {
      keptMessages.unshift({ name: entry.name });
      tokens += entry.tokens;
      continue;
    }
    if (left >= MIN_MESSAGE_TOKENS) {
      keptMessages.unshift({ name: entry.name, maxBytes: (left - MESSAGE_FRAME_TOKENS) * BYTES_A_TOKEN });
      tokens += left;
    }
    break;
  }
  return { keptMessages, tokens };
}

/** What an entry costs besides its text. */
const MESSAGE_FRAME_TOKENS = 16;

export interface CarriedOver {
  readonly plan: PlanStep[];
  readonly openCommands: { processId: string; command: string }[];
}

/** A finished plan is left out; a command is named only while it runs. */
export function carriedOver(
  plan: readonly PlanStep[],
  openCommands: ReadonlyMap<string, string>,
  isRunning: (processId: string) => boolean,
): CarriedOver {
  const isDone = plan.every(({ status }) => status === "completed");
  const running = [...openCommands].filter(([processId]) => isRunning(processId));
  return {
    plan: isDone
      ? []
      : plan.slice(0, MAX_PLAN_STEPS).map(({ text, status }) => ({ text: fitText(text, MAX_STEP_BYTES), status })),
    openCommands: running
      .slice(-MAX_OPEN_COMMANDS)
      .map(([processId, command]) => ({ processId, command: fitText(command, MAX_COMMAND_BYTES) })),
  };
}

export function tokensAfter(plan: CompactionPlan, summary: string, carried: CarriedOver): number {
  return plan.keptTokens + textTokens(summaryText({ summary, ...carried }));
}

/** How much of the conversation the request for a summary may contain. */
export function transcriptBytes(windowTokens: number): number {
  return Math.floor(windowTokens * TRANSCRIPT_SHARE) * BYTES_A_TOKEN;
}

const MAX_PIECE_BYTES = 4 * 1024;
/** The model may not have used the latest results yet. */
const RECENT_ENTRIES = 12;
const MAX_RECENT_PIECE_BYTES = 16 * 1024;

/**
 * The conversation as text, because a request without tools must not contain calls. The oldest entries are left out
 * first.
 */
export function transcript(summarized: readonly ContextEntry[], maxBytes: number): string {
  const earlier = summarized.findLast(({ role }) => role === "summary");
  const head = earlier === undefined ? "" : fitText(piece(earlier, MAX_RECENT_PIECE_BYTES), Math.floor(maxBytes / 4));
  const pieces: string[] = [];
  let left = maxBytes - Buffer.byteLength(head) - FRAME_BYTES;
  const rest = summarized.filter((entry) => entry !== earlier);
  for (const [age, entry] of rest.toReversed().entries()) {
    const cap = age < RECENT_ENTRIES ? MAX_RECENT_PIECE_BYTES : MAX_PIECE_BYTES;
    const text = piece(entry, Math.min(cap, Math.floor(maxBytes / RECENT_ENTRIES)));
    left -= Buffer.byteLength(text) + 2;
    if (left < 0) break;
    pieces.unshift(text);
  }
  const missing = rest.length - pieces.length;
  const mark = missing === 0 ? [] : [`[${missing} earlier entries left out]`];
  return [...(head === "" ? [] : [head]), ...mark, ...pieces].join("\n\n");
}

const FRAME_BYTES = 256;

function piece({ role, input }: ContextEntry, maxBytes: number): string {
  switch (input.kind) {
    case "user":
      return `${role === "message" ? "User" : "Note"}: ${fitText(textOf(input.parts), maxBytes)}`;
    case "assistant":
      return input.parts
        .map((part) => outputText(part, maxBytes))
        .filter((text) => text !== "")
        .join("\n");
    case "toolResult":
      return `Result of ${input.name}${input.isError ? " (error)" : ""}: ${fitText(textOf(input.parts), maxBytes)}`;
  }
}

function outputText(part: ModelOutputPart, maxBytes: number): string {
  switch (part.kind) {
    case "text":
      return `Assistant: ${fitText(part.text, maxBytes)}`;
    case "reasoning":
      return "";
    case "toolCall":
      return `Assistant calls ${part.name}: ${fitText(part.input, maxBytes)}`;
  }
}
