/** A chat as a whole: its turns with their items. */
import { z } from "zod";
import { grownItem, type EventOf, type Item, type StoredEvent } from "@heddle/protocol";
import { CHAT_EVENTS } from "./events.ts";
import { ChatItem, chatItem } from "./items.ts";
import { chatError, endStatus } from "./log.ts";

export const ChatTurn = z.object({
  id: z.string(),
  status: z.enum(["queued", "running", "completed", "interrupted", "failed"]),
  error: z.object({ message: z.string(), code: z.string(), retryable: z.boolean() }).optional(),
  started_at: z.string().optional(),
  completed_at: z.string().optional(),
  items: z.array(ChatItem),
});
export type ChatTurn = z.infer<typeof ChatTurn>;

export const ThreadView = z.object({
  id: z.string(),
  title: z.string().nullable(),
  title_source: z.enum(["user", "auto"]).nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  last_seq: z.int(),
  active_turn_id: z.string().nullable(),
  pending_approvals: z.array(CHAT_EVENTS["chat.approval.required"]),
  token_usage: z.record(z.string(), z.number()).optional(),
  turns: z.array(ChatTurn).optional(),
  has_more: z.boolean().optional().meta({ description: "There are older turns; ask with before_turn" }),
});
export type ThreadView = z.infer<typeof ThreadView>;

interface Draft extends Omit<ChatTurn, "items"> {
  readonly items: Map<string, Item>;
}

/** Oldest first; those that wait are last. */
export function chatTurns(history: readonly StoredEvent[]): readonly ChatTurn[] {
  const turns = new Map<string, Draft>();
  for (const stored of history) {
    const { body } = stored;
    if (body.type === "turn.queued" || body.type === "turn.admitted") begin(turns, body, stored.at);
    const turn = "turnId" in body ? turns.get(body.turnId) : undefined;
    if (turn !== undefined) take(turn, stored);
  }
  return [...turns.values()].map(({ items, ...turn }) => ({
    ...turn,
    items: [...items.values()].map((item) => chatItem(item, turn.id)),
  }));
}

function begin(turns: Map<string, Draft>, body: EventOf<"turn.queued" | "turn.admitted">, at: number): void {
  const { turnId: id } = body;
  if (body.type === "turn.queued") {
    turns.set(id, { id, status: "queued", items: new Map() });
    return;
  }
  // In the order in which they ran, not in which they waited.
  turns.delete(id);
  turns.set(id, { id, status: "running", started_at: iso(at), items: new Map() });
}

function take(turn: Draft, { body, at }: StoredEvent): void {
  switch (body.type) {
    case "item.started":
    case "item.completed":
      turn.items.set(body.item.id, body.item);
      return;
    case "item.checkpointed": {
      const item = turn.items.get(body.itemId);
      if (item !== undefined) turn.items.set(item.id, grownItem(item, body.appended));
      return;
    }
    case "turn.dequeued":
      end(turn, { status: endStatus(body.failure), failure: body.failure }, at);
      return;
    case "turn.completed":
      end(turn, body, at);
      return;
    default:
      return;
  }
}

function end(turn: Draft, by: Pick<EventOf<"turn.completed">, "status" | "failure">, at: number): void {
  turn.status = by.status;
  turn.completed_at = iso(at);
  const error = chatError(by.status, by.failure);
  if (error !== undefined) turn.error = error;
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** For a chat without a name. */
const PLACEHOLDER_CHARS = 42;

export function placeholderTitle(preview: string | undefined): string | null {
  if (preview === undefined || preview === "") return null;
  const letters = Array.from(preview);
  return letters.length <= PLACEHOLDER_CHARS ? preview : letters.slice(0, PLACEHOLDER_CHARS).join("").trimEnd();
}
