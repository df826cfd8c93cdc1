/**
 * Deltas of running items: live only, never stored. A listener that throws is removed, so that it cannot break a turn.
 */
import type { ItemDelta } from "@heddle/protocol";

export type DeltaListener = (delta: ItemDelta) => void;

export type Live = ReturnType<typeof createLive>;

export function createLive() {
  const byThread = new Map<string, Set<DeltaListener>>();
  return {
    publish(delta: ItemDelta): void {
      const listeners = byThread.get(delta.threadId);
      if (listeners === undefined) return;
      for (const listener of listeners) {
        try {
          listener(delta);
        } catch {
          listeners.delete(listener);
        }
      }
    },
    listen(threadId: string, listener: DeltaListener): Disposable {
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
