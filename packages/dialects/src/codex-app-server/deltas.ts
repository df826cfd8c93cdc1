/**
 * What running items add, as the original streams it. A delta may arrive before the stored beginning of its item has been
 * read; it waits for it, so that no client ever hears of an item it does not know.
 */
import type { Item, ItemDelta } from "@heddle/protocol";
import type { Outgoing } from "./shapes.ts";

export interface Deltas {
  delta(delta: ItemDelta): readonly Outgoing[];
  /** The item has been announced: what waited for it. */
  started(item: Item): readonly Outgoing[];
  completed(itemId: string): void;
  /** The turn is over; nothing more comes for its items. */
  reset(): void;
}

/** What may wait for beginnings that are still to be read: far more than a few milliseconds can bring. */
const MAX_WAITING_CHARS = 1024 * 1024;

interface Running {
  readonly type: Item["type"];
  /** Section of the reasoning summary that is being written; -1: none yet. */
  section: number;
}

export function createDeltas(threadId: string): Deltas {
  const running = new Map<string, Running>();
  const waiting = new Map<string, ItemDelta[]>();
  let waitingChars = 0;

  function shown(item: Running, { turnId, itemId, channel, delta }: ItemDelta): readonly Outgoing[] {
    const at = { threadId, turnId, itemId };
    const one = (method: string, params: Record<string, unknown>): Outgoing => ({
      kind: "delta",
      notification: { method, params: { ...at, ...params } },
    });
    switch (channel) {
      case "text":
        return [one(item.type === "proposedPlan" ? "item/plan/delta" : "item/agentMessage/delta", { delta })];
      case "output":
        return item.type === "commandExecution" ? [one("item/commandExecution/outputDelta", { delta })] : [];
      case "reasoningText":
        return [one("item/reasoning/textDelta", { delta, contentIndex: 0 })];
      case "reasoningSummary": {
        const isNext = item.section < 0 || delta.startsWith("\n\n");
        const text = item.section >= 0 && isNext ? delta.slice(2) : delta;
        if (isNext) item.section += 1;
        const summaryIndex = item.section;
        return [
          ...(isNext ? [part(at, summaryIndex)] : []),
          one("item/reasoning/summaryTextDelta", { delta: text, summaryIndex }),
        ];
      }
    }
  }

  return {
    delta(delta) {
      const item = running.get(delta.itemId);
      if (item !== undefined) return shown(item, delta);
      if (waitingChars + delta.delta.length > MAX_WAITING_CHARS) return [];
      waitingChars += delta.delta.length;
      waiting.set(delta.itemId, [...(waiting.get(delta.itemId) ?? []), delta]);
      return [];
    },
    started(item) {
      const begun: Running = { type: item.type, section: -1 };
      running.set(item.id, begun);
      const early = waiting.get(item.id) ?? [];
      waiting.delete(item.id);
      for (const { delta } of early) waitingChars -= delta.length;
      return early.flatMap((delta) => shown(begun, delta));
    },
    completed(itemId) {
      running.delete(itemId);
    },
    reset() {
      running.clear();
      waiting.clear();
      waitingChars = 0;
    },
  };
}

function part(at: Record<string, unknown>, summaryIndex: number): Outgoing {
  const notification = { method: "item/reasoning/summaryPartAdded", params: { ...at, summaryIndex } };
  return { kind: "notify", to: "followers", notification };
}
