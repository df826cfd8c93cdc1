/**
 * What a page shows of the server: asked for once, kept while it is looked at, and asked for again when an event says that
 * it has changed, never by the clock. What was there stays drawn while something newer is on its way.
 */
import { HeddleApiError } from "@heddle/client";
import type { StreamedEvent } from "@heddle/protocol/http";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { listen } from "./feed.ts";
import { expire } from "./session.ts";
import { createStore, type Store } from "./store.ts";

export interface Held<T> {
  readonly data: T | undefined;
  readonly error: HeddleApiError | Error | undefined;
  readonly isLoading: boolean;
}
export interface Resource<T> extends Held<T> {
  readonly reload: () => void;
}

interface Entry {
  readonly store: Store<Held<unknown>>;
  load: (signal: AbortSignal) => Promise<unknown>;
  isRunning: boolean;
  isWanted: boolean;
  users: number;
  readonly isFirst: boolean;
}

export interface ResourceOptions {
  readonly on?: (event: StreamedEvent) => boolean;
  /** What is asked for first, and says from where the page listens. */
  readonly isFirst?: boolean;
}

/** Events come in bursts; what they change is asked for once. */
const GAP_MS = 250;
/** What takes long, as a hundred pages of a list do, is asked for the less often: a fifth of the time at most. */
const REST = 4;
const MAX_GAP_MS = 10_000;
const MAX_KEPT = 60;
const entries = new Map<string, Entry>();

export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { on, isFirst = false }: ResourceOptions = {},
): Resource<T> {
  const entry = entryOf(key, load, isFirst);
  entry.load = load;
  const isFor = useRef(on);
  isFor.current = on;
  useEffect(() => {
    entry.users += 1;
    ask(entry);
    const stop = listen((event) => {
      if (isFor.current?.(event) === true) ask(entry);
    });
    return () => {
      entry.users -= 1;
      stop();
      forget();
    };
  }, [entry]);
  const held = useSyncExternalStore(entry.store.subscribe, entry.store.get) as Held<T>;
  return { ...held, reload: () => ask(entry) };
}

/** Everything that is shown now, such as after the cursor was lost. */
export function reloadAll(): void {
  for (const entry of entries.values()) if (entry.users > 0) ask(entry);
}

/** Of another user, after a login. */
export function dropAll(): void {
  entries.clear();
  listening = Promise.withResolvers();
}

/** An answer from before the cursor of the page would miss what happened between the two, for as long as it is shown. */
let listening = Promise.withResolvers<void>();

/** The page listens, or cannot: from now on anything may be asked for. */
export function mayAsk(): void {
  listening.resolve();
}

function entryOf(key: string, load: Entry["load"], isFirst: boolean): Entry {
  const known = entries.get(key);
  if (known !== undefined) return known;
  const store = createStore<Held<unknown>>({ data: undefined, error: undefined, isLoading: true });
  const made: Entry = { store, load, isRunning: false, isWanted: false, users: 0, isFirst };
  entries.set(key, made);
  return made;
}

function forget(): void {
  for (const [key, entry] of entries) {
    if (entries.size <= MAX_KEPT) return;
    if (entry.users === 0) entries.delete(key);
  }
}

function ask(entry: Entry): void {
  entry.isWanted = true;
  if (entry.isRunning) return;
  entry.isRunning = true;
  run(entry).catch(() => undefined);
}

async function run(entry: Entry): Promise<void> {
  const { store } = entry;
  if (!entry.isFirst) await listening.promise;
  while (entry.isWanted) {
    entry.isWanted = false;
    store.set({ ...store.get(), isLoading: true });
    const startedAt = performance.now();
    try {
      const data = await entry.load(new AbortController().signal);
      store.set({ data, error: undefined, isLoading: false });
    } catch (error) {
      if (error instanceof HeddleApiError && error.status === 401) expire(error.message);
      store.set({ data: store.get().data, error: asError(error), isLoading: false });
    }
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(MAX_GAP_MS, Math.max(GAP_MS, REST * (performance.now() - startedAt))));
    });
  }
  entry.isRunning = false;
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Files may be other ones after it. */
export function isOfWork({ body }: StreamedEvent): boolean {
  if (body.type === "item.completed") return body.item.type === "fileChange" || body.item.type === "commandExecution";
  return body.type === "turn.completed" || body.type === "task.checked" || body.type === "task.merged";
}

/** What runs may be something else after it. */
export function isOfCommand({ body }: StreamedEvent): boolean {
  if (body.type === "item.started" || body.type === "item.completed") return body.item.type === "commandExecution";
  return body.type === "turn.completed" || body.type === "tool.settled" || body.type === "client.settled";
}
