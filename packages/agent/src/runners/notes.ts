/** Events that are complete when they are made: user messages, notices, and notes for the model. */
import { newItemId, type EventOf, type InputPart, type Item, type NoticeText } from "@heddle/protocol";
import type { RunnerEvent } from "./runner.ts";

export function userMessage(
  turnId: string,
  content: readonly InputPart[],
  clientId: string | undefined,
  id: string = newItemId(),
): RunnerEvent[] {
  const item: Item = {
    type: "userMessage",
    id,
    content: [...content],
    ...(clientId === undefined ? {} : { clientId }),
  };
  return both(turnId, item);
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
