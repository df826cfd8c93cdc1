/** The stored past of a thread as turns and items. */
import { grownItem, type EventOf, type Item, type StoredEvent } from "@heddle/protocol";
import { turnError } from "./errors.ts";
import { codexItem } from "./items.ts";
import { enteredReview, exitedReview } from "./reviews.ts";
import type { CodexThreadItem, CodexTurn, CodexTurnError } from "./shapes.ts";

export interface StoredItem {
  readonly item: Item;
  readonly startedAtMs: number;
  readonly completedAtMs: number | null;
}

export interface StoredTurn {
  readonly turnId: string;
  readonly admission: EventOf<"turn.admitted">;
  readonly admittedAtMs: number;
  startedAtMs: number | undefined;
  readonly items: Map<string, StoredItem>;
  end: { readonly body: EventOf<"turn.completed">; readonly atMs: number } | undefined;
}

/** Oldest first. */
export function storedTurns(history: readonly StoredEvent[]): readonly StoredTurn[] {
  const turns = new Map<string, StoredTurn>();
  for (const { body, at } of history) {
    if (body.type === "turn.admitted") {
      const { turnId } = body;
      const begun = { turnId, admission: body, admittedAtMs: at, startedAtMs: undefined };
      turns.set(turnId, { ...begun, items: new Map(), end: undefined });
    }
    const turn = "turnId" in body ? turns.get(body.turnId) : undefined;
    if (turn === undefined) continue;
    if (body.type === "turn.started") turn.startedAtMs = at;
    if (body.type === "item.started") {
      turn.items.set(body.item.id, { item: body.item, startedAtMs: at, completedAtMs: null });
    }
    if (body.type === "item.completed") {
      const startedAtMs = turn.items.get(body.item.id)?.startedAtMs ?? at;
      // As in the original: a proposed plan comes before the message around it.
      if (body.item.type === "agentMessage") turn.items.delete(body.item.id);
      turn.items.set(body.item.id, { item: body.item, startedAtMs, completedAtMs: at });
    }
    if (body.type === "item.checkpointed") {
      const open = turn.items.get(body.itemId);
      if (open?.completedAtMs === null) {
        turn.items.set(body.itemId, { ...open, item: grownItem(open.item, body.appended) });
      }
    }
    if (body.type === "turn.completed") turn.end = { body, atMs: at };
  }
  return [...turns.values()];
}

export function codexTurn(turn: StoredTurn, view: CodexTurn["itemsView"]): CodexTurn {
  const items = view === "notLoaded" ? [] : view === "full" ? itemsOf(turn) : summaryOf(turn);
  return {
    ...turnHead(turn),
    items,
    itemsView: view,
  };
}

export function itemsOf(turn: StoredTurn): readonly CodexThreadItem[] {
  const items = [...turn.items.values()].flatMap(({ item, ...times }) => codexItem(item, times) ?? []);
  return turn.admission.task === "review" ? marked(turn, items) : items;
}

function marked(turn: StoredTurn, items: readonly CodexThreadItem[]): readonly CodexThreadItem[] {
  const { admission, admittedAtMs, startedAtMs = admittedAtMs, end } = turn;
  const entered = enteredReview(admission, { startedAtMs, completedAtMs: startedAtMs });
  const answer = items.findLast(({ type }) => type === "agentMessage")?.["text"];
  const times = { startedAtMs: end?.atMs ?? null, completedAtMs: end?.atMs ?? null };
  const exited = end === undefined ? undefined : exitedReview(admission, answer, times);
  return [...(entered === undefined ? [] : [entered]), ...items, ...(exited === undefined ? [] : [exited])];
}

/** What was asked and what was answered. */
function summaryOf(turn: StoredTurn): readonly CodexThreadItem[] {
  const all = itemsOf(turn);
  const last = all.findLast(({ type }) => type === "agentMessage");
  return all.filter((item) => item.type === "userMessage" || item === last);
}

function turnHead({ turnId, admittedAtMs, startedAtMs, end }: StoredTurn): Omit<CodexTurn, "items" | "itemsView"> {
  return {
    id: turnId,
    rootTurnId: turnId,
    status: end?.body.status ?? "inProgress",
    error: end === undefined ? null : endError(end.body),
    startedAt: seconds(startedAtMs ?? admittedAtMs),
    completedAt: end === undefined ? null : seconds(end.atMs),
    durationMs: end?.body.durationMs ?? null,
    ...(end?.body.costUsd === undefined ? {} : { costUsd: end.body.costUsd }),
  };
}

/** A requested stop is no error; any other early end is. */
export function endError({ status, failure }: EventOf<"turn.completed">): CodexTurnError | null {
  if (failure === undefined || (status === "interrupted" && failure.code === "turn.interrupted")) return null;
  return turnError(failure);
}

/** A turn that was admitted a moment ago. */
export function newTurn(turnId: string, startedAtMs?: number): CodexTurn {
  return {
    id: turnId,
    rootTurnId: turnId,
    items: [],
    itemsView: "notLoaded",
    status: "inProgress",
    error: null,
    startedAt: startedAtMs === undefined ? null : seconds(startedAtMs),
    completedAt: null,
    durationMs: null,
  };
}

export function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
