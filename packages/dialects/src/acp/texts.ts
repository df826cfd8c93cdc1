/** Texts that grow: what was sent of each, so that its end sends the rest and nothing twice. */
import type { Item, ItemDelta } from "@heddle/protocol";
import type { AcpOutgoing } from "./shapes.ts";

export interface Texts {
  started(item: Item): void;
  delta(delta: ItemDelta, isBehind: boolean): readonly AcpOutgoing[];
  completed(item: TextItem): readonly AcpOutgoing[];
  /** What comes next does not follow what was sent. */
  lost(): void;
  reset(): void;
}

type TextItem = Extract<Item, { type: "agentMessage" | "proposedPlan" | "reasoning" }>;

interface Running {
  readonly update: "agent_message_chunk" | "agent_thought_chunk";
  /** Of a reasoning: the one that came first is sent, the other says the same. */
  channel: ItemDelta["channel"] | undefined;
  sent: number;
  /** Something was left out: nothing more is sent before the end. */
  isBehind: boolean;
}

export function createTexts(): Texts {
  const running = new Map<string, Running>();

  function begin(item: TextItem): Running {
    const known = running.get(item.id);
    if (known !== undefined) return known;
    const update = item.type === "reasoning" ? "agent_thought_chunk" : "agent_message_chunk";
    const begun: Running = { update, channel: undefined, sent: 0, isBehind: false };
    running.set(item.id, begun);
    return begun;
  }

  return {
    started(item) {
      if (item.type === "agentMessage" || item.type === "proposedPlan" || item.type === "reasoning") begin(item);
    },
    delta({ itemId, channel, delta }, isBehind) {
      const item = running.get(itemId);
      if (item === undefined) return [];
      item.channel ??= channel;
      if (item.channel !== channel) return [];
      item.isBehind ||= isBehind;
      if (item.isBehind || delta === "") return [];
      item.sent += delta.length;
      return [chunk(item, itemId, delta)];
    },
    completed(item) {
      const begun = begin(item);
      running.delete(item.id);
      const rest = wholeOf(item, begun).slice(begun.sent);
      return rest === "" ? [] : [chunk(begun, item.id, rest)];
    },
    lost() {
      for (const item of running.values()) item.isBehind = true;
    },
    reset: () => running.clear(),
  };
}

function wholeOf(item: TextItem, { channel }: Running): string {
  if (item.type !== "reasoning") return item.text;
  const summary = item.summary.join("\n\n");
  if (channel === "reasoningText") return item.text ?? "";
  return channel === "reasoningSummary" || summary !== "" ? summary : (item.text ?? "");
}

function chunk({ update: sessionUpdate }: Running, messageId: string, text: string): AcpOutgoing {
  return { kind: "update", update: { sessionUpdate, content: { type: "text", text }, messageId } };
}
