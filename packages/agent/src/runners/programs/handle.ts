/**
 * The conversation of a thread as its program keeps it. A thread owns it: its turns run one after the other under the lease of
 * a turn, so that no second process continues it beside the first. What the program has not received it gets as text.
 */
import {
  addUsage,
  NO_USAGE,
  type EventBody,
  type EventOf,
  type InputPart,
  type StoredEvent,
  type Usage,
} from "@heddle/protocol";
import type { ReadJournal } from "../../threads/history.ts";
import { readPlan } from "../../threads/past.ts";
import type { TurnRequest } from "../runner.ts";
import type { KnownHandle } from "./conversation.ts";

export interface Before {
  /** Undefined: there is none that holds exactly what still counts. */
  readonly handle: KnownHandle | undefined;
  /** What was said since without the program; undefined: nothing. */
  readonly told: string | undefined;
  /** Everything that was said. */
  readonly whole: string | undefined;
}

export async function readBefore(
  journal: ReadJournal,
  turn: Pick<TurnRequest, "threadId" | "turnId" | "history">,
  { runner, canFork }: { readonly runner: string; readonly canFork: boolean },
): Promise<Before> {
  const whole = retold(turn, 0);
  const connected = await lastConnected(journal, turn.threadId, runner);
  if (connected === undefined || (connected.isOfOther && !canFork)) return { handle: undefined, told: whole, whole };
  const { handle, isOfOther, turnId } = connected;
  const from = turn.history.findLastIndex(({ body: one }) => "turnId" in one && one.turnId === turnId);
  return { handle: { id: handle, isOfOther }, told: retold(turn, from + 1), whole };
}

export type LastConnected = EventOf<"agent.connected"> & Pick<KnownHandle, "isOfOther">;

/** The conversation of the thread at this runner, where it holds exactly what still counts; undefined: there is none. */
export async function lastConnected(
  journal: ReadJournal,
  threadId: string,
  runner: string,
): Promise<LastConnected | undefined> {
  const { parts, kept } = await readPlan(journal, threadId);
  for (const part of parts.toReversed()) {
    const [last] = await journal.marks.events({ ...part, kinds: ["agent.connected"], name: runner, newest: 1 });
    if (last?.body.type !== "agent.connected") continue;
    const { version, stream, body } = last;
    const isKept = kept.some(({ stream: of, after, upTo }) => of === stream && version > after && version <= upTo);
    const isOfOther = stream !== threadId;
    // It has heard what was reverted since, and cannot forget it.
    const isWhole = isKept && (!isOfOther || (await isAtFork(journal, part, body.turnId)));
    return isWhole ? { ...body, isOfOther } : undefined;
  }
  return undefined;
}

/** The fork has its whole past: nothing was said there later. */
async function isAtFork(
  journal: ReadJournal,
  { stream, upTo }: { readonly stream: string; readonly upTo: number },
  turnId: string,
): Promise<boolean> {
  const last = await journal.threads.lastTurn(stream);
  return last?.id === turnId && (last.endedVersion ?? Infinity) <= upTo;
}

/** What was recorded of a conversation so far; undefined: it is new. */
export function countedIn(
  { history }: Pick<TurnRequest, "history">,
  handle: KnownHandle | undefined,
  sinceThen: Usage = NO_USAGE,
): Usage | undefined {
  if (handle === undefined) return undefined;
  const turns = new Set(
    history.flatMap(({ body }) => (body.type === "agent.connected" && body.handle === handle.id ? [body.turnId] : [])),
  );
  return history
    .flatMap(({ body }) => (body.type === "model.responded" && turns.has(body.turnId) ? [body.usage] : []))
    .reduce(addUsage, sinceThen);
}

/** As much as a person would paste. */
const MAX_TOLD_CHARS = 48_000;

function retold({ history, turnId }: Pick<TurnRequest, "history" | "turnId">, from: number): string | undefined {
  const said = history.slice(from).flatMap((event) => (isOf(event, turnId) ? [] : sayings(event.body)));
  if (said.length === 0) return undefined;
  const whole = said.join("\n\n");
  const kept =
    whole.length <= MAX_TOLD_CHARS ? whole : `(earlier messages are left out)\n…${whole.slice(-MAX_TOLD_CHARS)}`;
  return `<earlier_conversation>\nThis is what was said before in this conversation, without you.\n\n${kept}\n</earlier_conversation>`;
}

function isOf({ body }: StoredEvent, turnId: string): boolean {
  return "turnId" in body && body.turnId === turnId;
}

function sayings(body: EventBody): readonly string[] {
  if (body.type === "item.completed" && body.item.type === "userMessage") {
    const text = textOf(body.item.content);
    return text === "" ? [] : [`User: ${text}`];
  }
  if (body.type === "context.compacted") return [`Summary of what came before: ${body.summary}`];
  if (body.type !== "model.responded" || body.purpose !== undefined) return [];
  const text = body.output.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n");
  return text === "" ? [] : [`Agent: ${text}`];
}

function textOf(parts: readonly InputPart[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [`(${part.type})`])).join("\n");
}
