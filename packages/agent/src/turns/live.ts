/**
 * What is live only, never stored: deltas of running items, and that something came at all. A listener that throws is
 * removed, so that it cannot break a turn.
 */
import type { ItemDelta } from "@heddle/protocol";

export type DeltaListener = (delta: ItemDelta) => void;

export type Live = ReturnType<typeof createLive>;

export function createLive() {
  const deltas = createListeners<ItemDelta>();
  const activity = createListeners<void>();
  return {
    publish: (delta: ItemDelta): void => deltas.tell(delta.threadId, delta),
    listen: (threadId: string, listener: DeltaListener): Disposable => deltas.add(threadId, listener),
    /** Bytes came for the thread, whether or not they make a delta. */
    active: (threadId: string): void => activity.tell(threadId, undefined),
    watch: (threadId: string, listener: () => void): Disposable => activity.add(threadId, listener),
  };
}

export function createListeners<T>() {
  const byThread = new Map<string, Set<(value: T) => void>>();
  return {
    tell(threadId: string, value: T): void {
      const listeners = byThread.get(threadId);
      if (listeners === undefined) return;
      for (const listener of listeners) {
        try {
          listener(value);
        } catch {
          listeners.delete(listener);
        }
      }
    },
    add(threadId: string, listener: (value: T) => void): Disposable {
      const listeners = byThread.get(threadId) ?? new Set();
      byThread.set(threadId, listeners);
      listeners.add(listener);
      return {
        [Symbol.dispose]() {
          listeners.delete(listener);
          if (listeners.size === 0) byThread.delete(threadId);
        },
      };
    },
  };
}
