/**
 * One thread as it stands: its turns, the tail of its items, and what events and live pieces add to them. Older items come
 * when they are asked for. Pieces are gathered and drawn at most once a frame.
 */
import type { StreamedDelta, StreamedEvent, ThreadDetail, Turn } from "@heddle/protocol/http";
import { useEffect, useState } from "react";
import { openFeed, tell } from "../../live/feed.ts";
import { asError } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { createStore, useStore, type Store } from "../../live/store.ts";
import { checkpoint, foldItem, grow, isText, NOT_GROWN, type Grown } from "./folded.ts";
import type { Entry } from "./steps.ts";

export interface ThreadNow {
  readonly detail: ThreadDetail | undefined;
  readonly turns: readonly Turn[];
  readonly items: readonly Entry[];
  readonly grown: ReadonlyMap<string, Grown>;
  /** `before` of the items that are not loaded; null: all are there. */
  readonly older: number | null;
  /** Live pieces that the server left out, because this page was slow. */
  readonly leftOut: number;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
}

const NOTHING: ThreadNow = {
  detail: undefined,
  turns: [],
  items: [],
  grown: new Map(),
  older: null,
  leftOut: 0,
  error: undefined,
  isLoading: true,
};
const ITEMS_A_PAGE = 500;
/** Above every number that an event has. */
const NEWEST = 999_999_999_999;
const TURNS_A_PAGE = 100;
const TURN_EVENTS = new Set(["turn.admitted", "turn.started", "turn.completed", "thread.reverted", "thread.named"]);

export interface ThreadHandle extends ThreadNow {
  readonly loadOlder: () => void;
  /** What no event of its stream tells, such as that it was archived. */
  readonly reload: () => void;
}

export function useThread(threadId: string | undefined): ThreadHandle {
  const [made, setMade] = useState<ThreadReader>();
  useEffect(() => {
    if (threadId === undefined) return undefined;
    const reader = readThread(threadId);
    setMade(reader);
    return reader.close;
  }, [threadId]);
  const now = useStore(made?.store ?? EMPTY);
  return { ...now, loadOlder: () => made?.loadOlder(), reload: () => made?.reload() };
}
const EMPTY = createStore(NOTHING);

interface ThreadReader {
  readonly store: Store<ThreadNow>;
  readonly loadOlder: () => void;
  readonly reload: () => void;
  readonly close: () => void;
}

function readThread(threadId: string): ThreadReader {
  const store = createStore(NOTHING);
  const set = (change: Partial<ThreadNow>): void => store.set({ ...store.get(), ...change });
  const fail = (error: unknown): void => set({ error: asError(error), isLoading: false });
  const pieces = gatherPieces(store);
  let close: () => void = () => undefined;
  let isClosed = false;
  let isReading = false;
  const readTurns = async (): Promise<void> => {
    const { data } = await api().listTurns(threadId, { limit: TURNS_A_PAGE });
    set({ turns: data, detail: await api().readThread(threadId) });
  };
  const onEvent = (event: StreamedEvent): void => {
    pieces.onEvent(event);
    set({ items: foldItem(store.get().items, event) });
    tell(event);
    if (TURN_EVENTS.has(event.body.type) || event.body.type === "model.responded") later(readTurns, fail);
  };
  /** Returns after which event to listen. */
  const begin = async (): Promise<number> => {
    const [detail, { data: turns }, page] = await Promise.all([
      api().readThread(threadId),
      api().listTurns(threadId, { limit: TURNS_A_PAGE }),
      api().listItems(threadId, { before: NEWEST, limit: ITEMS_A_PAGE, brief: true }),
    ]);
    set({ detail, turns, items: page.data, older: page.nextBefore ?? null, isLoading: false, error: undefined });
    const open = page.data.find(({ completedAt }) => completedAt === undefined);
    // The three answers are of different moments: what came after the last step that is known is told again.
    return Math.max(0, Math.min(detail.seq, (open ?? page.data.at(-1))?.seq ?? 1) - 1);
  };
  const follow = (after: number): void => {
    if (isClosed) return;
    close = openFeed({
      threadId,
      deltas: true,
      after,
      onEvent,
      onDelta: pieces.onDelta,
      onLagged: (deltas) => set({ leftOut: store.get().leftOut + deltas }),
      onExpired: begin,
    });
  };
  const loadOlder = (): void => {
    const { older } = store.get();
    if (older === null || isReading) return;
    isReading = true;
    api()
      .listItems(threadId, { before: older, limit: ITEMS_A_PAGE, brief: true })
      .then((page) => set({ items: [...page.data, ...store.get().items], older: page.nextBefore ?? null }))
      .catch(fail)
      .finally(() => {
        isReading = false;
      });
  };
  begin().then(follow).catch(fail);
  return {
    store,
    loadOlder,
    reload: () => later(readTurns, fail),
    close() {
      isClosed = true;
      close();
      pieces.close();
    },
  };
}

/** Several events in a row ask once. */
const waiting = new WeakSet<() => Promise<void>>();
function later(call: () => Promise<void>, fail: (error: unknown) => void): void {
  if (waiting.has(call)) return;
  waiting.add(call);
  setTimeout(() => {
    waiting.delete(call);
    call().catch(fail);
  }, 200);
}

interface Pieces {
  readonly onDelta: (delta: StreamedDelta) => void;
  readonly onEvent: (event: StreamedEvent) => void;
  readonly close: () => void;
}

function gatherPieces(store: Store<ThreadNow>): Pieces {
  const buffer = new Map<string, { readonly offset: number | undefined; readonly parts: string[] }>();
  let frame = 0;
  const flush = (): void => {
    frame = 0;
    if (buffer.size === 0) return;
    const grown = new Map(store.get().grown);
    for (const [itemId, { offset, parts }] of buffer)
      grown.set(itemId, grow(grown.get(itemId) ?? NOT_GROWN, parts.join(""), offset));
    buffer.clear();
    store.set({ ...store.get(), grown });
  };
  const change = (itemId: string, next: ((before: Grown) => Grown) | undefined): void => {
    flush();
    const grown = new Map(store.get().grown);
    if (next === undefined) grown.delete(itemId);
    else grown.set(itemId, next(grown.get(itemId) ?? NOT_GROWN));
    store.set({ ...store.get(), grown });
  };
  return {
    onDelta(delta) {
      if (!isText(delta)) return;
      const known = buffer.get(delta.itemId) ?? { offset: delta.offset, parts: [] };
      known.parts.push(delta.delta);
      buffer.set(delta.itemId, known);
      if (frame === 0) frame = requestAnimationFrame(flush);
    },
    onEvent({ body }) {
      if (body.type === "item.checkpointed")
        change(body.itemId, (before) => checkpoint(before, body.appended, body.offset));
      else if (body.type === "item.completed" && (store.get().grown.has(body.item.id) || buffer.has(body.item.id)))
        change(body.item.id, undefined);
    },
    close: () => cancelAnimationFrame(frame),
  };
}
