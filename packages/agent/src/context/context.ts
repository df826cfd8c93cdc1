/**
 * What the model sees: the thread's events folded into one conversation. Pure, and used by resumed and running turns
 * alike, so that both send the model the same. Every tool call of the model has a result here.
 */
import type {
  EventBody,
  EventOf,
  InputPart,
  InputRole,
  ModelOutputPart,
  ModelToolCall,
  PlanStep,
} from "@heddle/protocol";
import type { ModelInput } from "@heddle/models";
import { clientContextText, newClientContext } from "./client-context.ts";
import { afterCompaction } from "./compacted-context.ts";
import { entryOf, userText, type ContextEntry } from "./context-entry.ts";
import { markedInput } from "./input-role.ts";
import { withoutParts } from "./left-out-context.ts";

export interface Context {
  readonly entries: readonly ContextEntry[];
  readonly plan: readonly PlanStep[];
  /** Commands that had not ended when the model last saw them. */
  readonly openCommands: ReadonlyMap<string, string>;
  readonly input: readonly ModelInput[];
  /** Tokens of a request with it: the provider's figure for the last one, and an estimate of what came since. */
  tokens(overheadTokens: number): number;
  apply(body: EventBody): void;
}

export function buildContext(history: readonly EventBody[]): readonly ModelInput[] {
  return createContext(history).input;
}

export function createContext(history: readonly EventBody[]): Context {
  const fold: Fold = {
    entries: [],
    turnBegins: 0,
    plan: [],
    measured: undefined,
    greeted: new Set(),
    openCommands: new Map(),
    commands: new Map(),
    openCalls: new Map(),
  };
  for (const body of history) apply(fold, body);
  return {
    apply: (body) => apply(fold, body),
    openCommands: fold.openCommands,
    get entries() {
      return fold.entries;
    },
    get plan() {
      return fold.plan;
    },
    get input() {
      return fold.entries.map(({ input }) => input);
    },
    tokens(overheadTokens) {
      const { entries, measured } = fold;
      const added = measured === undefined ? entries : entries.slice(measured.entries);
      return added.reduce((total, { tokens }) => total + tokens, measured?.tokens ?? overheadTokens);
    },
  };
}

interface Fold {
  entries: ContextEntry[];
  turnBegins: number;
  plan: readonly PlanStep[];
  measured: { readonly tokens: number; readonly entries: number } | undefined;
  /** Turns whose first message was applied. */
  readonly greeted: Set<string>;
  readonly openCommands: Map<string, string>;
  /** Item id → a started command, and its process id once it has outlived its call. */
  readonly commands: Map<string, { readonly command: string; processId?: string }>;
  /** Call id → the call and the entry of its result; a later response may reuse an id. */
  readonly openCalls: Map<string, { readonly call: ModelToolCall; readonly entry: ContextEntry }>;
}

function apply(fold: Fold, body: EventBody): void {
  switch (body.type) {
    case "context.loaded":
      // Stored after its turn's admission, placed before it.
      fold.entries.splice(fold.turnBegins, 0, entryOf("surroundings", userText(body.text)));
      break;
    case "context.added":
      if (body.source === "client") addClientContext(fold, body, body.turnId);
      else fold.entries.push(entryOf("note", userText(body.text)));
      break;
    case "context.injected":
      for (const entry of body.entries) fold.entries.push(entryOf(INJECTED[entry.kind], entry));
      break;
    case "context.compacted":
      fold.entries = afterCompaction(fold.entries, body);
      fold.measured = undefined;
      break;
    case "context.left-out":
      fold.entries = withoutParts(fold.entries, body);
      fold.measured = undefined;
      break;
    case "turn.admitted":
      fold.turnBegins = fold.entries.length;
      for (const given of body.context ?? [])
        addClientContext(fold, { ...given, text: clientContextText(given) }, body.turnId);
      if (body.input.length > 0) fold.entries.push(entryOf("message", userInput(body.input, body.role), body.turnId));
      // Without input there is nothing that a first message could repeat.
      else fold.greeted.add(body.turnId);
      break;
    case "hook.ran":
      // The model never sees a prompt that was refused.
      if (body.event === "UserPromptSubmit" && body.subject === ADMITTED && body.outcome === "blocked")
        fold.entries = fold.entries.filter(({ name }) => name !== body.turnId);
      break;
    case "item.started":
      if (body.item.type === "commandExecution") fold.commands.set(body.item.id, { command: body.item.command });
      break;
    case "item.completed":
      complete(fold, body);
      break;
    case "model.responded":
      respond(fold, body);
      break;
    case "tool.settled":
      settle(fold, body);
      break;
    default:
      break;
  }
}

function addClientContext(fold: Fold, { name, kind = "untrusted", text }: AddedContext, turnId: string): void {
  const entry = newClientContext(fold.entries, { name, kind, text }, turnId);
  if (entry !== undefined) fold.entries.push(entry);
}

/** Only a command is given as it is. */
function userInput(parts: readonly InputPart[], role: InputRole | undefined): ModelInput {
  return { kind: "user", parts: markedInput(parts, role) };
}

type AddedContext = Pick<EventOf<"context.added">, "name" | "kind" | "text">;

const INJECTED = { user: "note", assistant: "answer", toolResult: "result" } as const;

function complete(fold: Fold, { turnId, item }: EventOf<"item.completed">): void {
  const { greeted, entries, openCommands } = fold;
  if (item.type === "plan" && item.status === "completed") fold.plan = item.steps;
  if (item.type === "commandExecution") {
    const processId = fold.commands.get(item.id)?.processId;
    fold.commands.delete(item.id);
    if (item.processId !== undefined) openCommands.set(item.processId, item.command);
    else if (processId !== undefined) openCommands.delete(processId);
  }
  if (item.type !== "userMessage") return;
  // The first one repeats the admitted input; later ones are steering, placed where the model saw them.
  if (greeted.has(turnId)) entries.push(entryOf("message", userInput(item.content, item.role), item.id));
  greeted.add(turnId);
}

function respond(fold: Fold, { purpose, usage, output, requestId }: EventOf<"model.responded">): void {
  // A side request, such as for a summary.
  if (purpose !== undefined) return;
  const { entries, openCalls } = fold;
  if (usage.inputTokens > 0) fold.measured = { tokens: usage.inputTokens, entries: entries.length };
  if (output.length > 0) entries.push(entryOf("answer", { kind: "assistant", parts: output }, requestId));
  for (const call of toolCalls(output)) {
    const entry = entryOf("result", toolResult(call, undefined));
    entries.push(entry);
    openCalls.set(call.callId, { call, entry });
  }
}

function settle({ entries, openCalls, commands, openCommands }: Fold, body: EventOf<"tool.settled">): void {
  const started = commands.get(body.itemId);
  if (started !== undefined && body.processId !== undefined) {
    started.processId = body.processId;
    openCommands.set(body.processId, started.command);
  }
  const waiting = openCalls.get(body.callId);
  const index = waiting === undefined ? -1 : entries.lastIndexOf(waiting.entry);
  if (waiting === undefined || index === -1) return;
  const entry = entryOf("result", toolResult(waiting.call, body));
  entries[index] = entry;
  openCalls.set(body.callId, { call: waiting.call, entry });
}

/** Subject of a UserPromptSubmit hook: the input a turn was admitted with, or steering. */
export const ADMITTED = "prompt";
export const STEERING = "steering";

export function toolCalls(output: readonly ModelOutputPart[]): ModelToolCall[] {
  return output.filter((part) => part.kind === "toolCall");
}

function toolResult(
  call: ModelToolCall,
  settled: Pick<EventOf<"tool.settled">, "outcome" | "output"> | undefined,
): ModelInput {
  const parts: readonly InputPart[] = settled?.output ?? [{ type: "text", text: NOT_RUN }];
  return {
    kind: "toolResult",
    callId: call.callId,
    name: call.name,
    shape: call.shape,
    isError: settled?.outcome !== "ok",
    parts,
  };
}

const NOT_RUN = "This call was not run: the turn ended before it could start.";

/** The result of a call that was running when Heddle stopped. */
export const OUTCOME_UNKNOWN =
  "The outcome of this call is unknown: the harness stopped while it ran. It may have run fully, partly or not at all, " +
  "and it was not run again. Look at the current state before you decide what to do.";
