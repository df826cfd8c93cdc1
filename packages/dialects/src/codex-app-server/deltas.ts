/** What running items add, as the original streams it. Deltas of an item come after its stored beginning. */
import type { Item, ItemDelta } from "@heddle/protocol";
import type { Outgoing } from "./shapes.ts";

export interface Deltas {
  delta(delta: ItemDelta): readonly Outgoing[];
  started(item: Item): void;
  completed(itemId: string): void;
  /** The turn is over; nothing more comes for its items. */
  reset(): void;
}

interface Running {
  readonly type: Item["type"];
  /** Section of the reasoning summary that is being written; -1: none yet. */
  section: number;
}

export function createDeltas(threadId: string): Deltas {
  const running = new Map<string, Running>();

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
      return item === undefined ? [] : shown(item, delta);
    },
    started(item) {
      running.set(item.id, { type: item.type, section: -1 });
    },
    completed(itemId) {
      running.delete(itemId);
    },
    reset() {
      running.clear();
    },
  };
}

function part(at: Record<string, unknown>, summaryIndex: number): Outgoing {
  const notification = { method: "item/reasoning/summaryPartAdded", params: { ...at, summaryIndex } };
  return { kind: "notify", to: "followers", notification };
}
