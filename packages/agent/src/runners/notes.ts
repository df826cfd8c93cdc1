/** Events that are complete when they are made: user messages, notices, and notes for the model. */
import {
  defined,
  newItemId,
  type EventOf,
  type InputPart,
  type Item,
  type ItemOf,
  type NoticeText,
} from "@heddle/protocol";
import type { RunnerEvent } from "./runner.ts";

export function userMessage(
  turnId: string,
  content: readonly InputPart[],
  { id = newItemId(), clientId, role, source }: SaidOfInput = {},
): RunnerEvent[] {
  const item: Item = { type: "userMessage", id, content: [...content], ...defined({ clientId, role, source }) };
  return both(turnId, item);
}

/** Who sent an input under which id, and what it is to the agent. */
export type SaidOfInput = {
  readonly [K in "id" | "clientId" | "role" | "source"]?: ItemOf<"userMessage">[K] | undefined;
};

export function saidOf({ clientId, role, source }: SaidOfInput): SaidOfInput {
  return { clientId, role, source };
}

export function warning(turnId: string, code: string, message: string): RunnerEvent[] {
  return notice(turnId, { level: "warning", code, message });
}

export function notice(turnId: string, text: NoticeText): RunnerEvent[] {
  return both(turnId, { type: "notice", id: newItemId(), ...text });
}

export function hookNotes(turnId: string, event: string, notes: readonly string[]): EventOf<"context.added">[] {
  return notes.map((note) => ({
    type: "context.added",
    v: 1,
    turnId,
    source: "hook",
    name: event,
    text: `A hook of the user (${event}) says:\n${note}`,
  }));
}

function both(turnId: string, item: Item): RunnerEvent[] {
  return [
    { type: "item.started", v: 1, turnId, item },
    { type: "item.completed", v: 1, turnId, item },
  ];
}
