/**
 * One model request: streams deltas, opens and closes their items, and records the answer. A failed attempt closes its
 * items as partial and the next one opens new ones, so that the deltas of an item always add up to its text.
 */
import {
  defined,
  HeddleError,
  newItemId,
  uuidv7,
  type EventOf,
  type Item,
  type ItemOf,
  type MessagePhase,
  type ModelOutputPart,
  type TurnSettings,
  type WebSearch,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { streamModel, type ModelEvent, type ModelRequest, type Provider } from "@heddle/models";
import type { TurnIo } from "./runner.ts";
import type { PlannedText } from "./planned-text.ts";

type Completed = Extract<ModelEvent, { type: "completed" }>;

export async function askModel(asking: Asking, { mode }: Pick<TurnSettings, "mode">): Promise<Completed> {
  const plans = mode === "plan" ? await import("./planned-text.ts") : undefined;
  const openText = plans && (() => new plans.PlannedText(asking.turnId, asking.io));
  return ask(asking, createItems(asking, openText), {});
}

/**
 * A side request: it makes no items and is not part of the conversation. The request and its usage are stored; the
 * caller keeps the text.
 */
export function askBeside(provider: Provider, request: ModelRequest, turnId: string, io: TurnIo): Promise<Completed> {
  return ask({ provider, request, turnId, io }, NO_ITEMS, { purpose: "compaction" });
}

interface Asking {
  readonly provider: Provider;
  readonly request: ModelRequest;
  readonly turnId: string;
  readonly io: TurnIo;
}

type Purpose = Pick<EventOf<"model.requested">, "purpose">;

async function ask(
  { provider, request, turnId, io }: Asking,
  items: ResponseItems,
  purpose: Purpose,
): Promise<Completed> {
  const requestId = `req_${uuidv7()}`;
  failpoint("turn.before-request");
  using progress = io.ahead?.();
  for await (const event of streamModel(provider, request, { signal: io.signal, progress })) {
    switch (event.type) {
      case "requested":
        await io.record([
          {
            type: "model.requested",
            v: 1,
            turnId,
            requestId,
            provider: provider.id,
            model: request.model,
            requestBytes: event.requestBytes,
            ...purpose,
          },
        ]);
        break;
      case "retrying": {
        const { type: _, ...retry } = event;
        await items.breakOff();
        await io.record([{ type: "model.retried", v: 1, turnId, requestId, ...retry }]);
        break;
      }
      case "text.delta":
        await items.text(event);
        break;
      case "reasoning.delta":
        await items.reasoning(event);
        break;
      case "part":
        await items.complete(event.index, event.part);
        break;
      case "completed":
        failpoint("turn.after-response");
        await io.record([{ ...responded(turnId, requestId, event), ...asideOf(purpose) }]);
        return event;
    }
  }
  throw new HeddleError("provider.cut", "the model's answer stopped before its end");
}

export function declined(what: string, explanation: string | undefined): HeddleError {
  return new HeddleError("provider.refused", explanation === undefined ? what : `${what}: ${explanation}`);
}

function asideOf(purpose: Purpose): Partial<EventOf<"model.responded">> {
  return purpose.purpose === undefined ? {} : { ...purpose, output: [] };
}

function responded(turnId: string, requestId: string, event: Completed): EventOf<"model.responded"> {
  return {
    type: "model.responded",
    v: 1,
    turnId,
    requestId,
    output: [...event.output],
    stopReason: event.stopReason,
    ...(event.explanation === undefined ? {} : { explanation: event.explanation }),
    usage: event.usage,
    ...(event.costUsd === undefined ? {} : { costUsd: event.costUsd }),
    ...(event.skipped === undefined ? {} : { skipped: { ...event.skipped } }),
  };
}

interface ResponseItems {
  text(event: Extract<ModelEvent, { type: "text.delta" }>): Promise<void>;
  reasoning(event: Extract<ModelEvent, { type: "reasoning.delta" }>): Promise<void>;
  complete(index: number, part: ModelOutputPart): Promise<void>;
  breakOff(): Promise<void>;
}

const NO_ITEMS: ResponseItems = {
  text: async () => undefined,
  reasoning: async () => undefined,
  complete: async () => undefined,
  breakOff: async () => undefined,
};

function createItems({ provider, turnId, io }: Asking, openText?: () => PlannedText): ResponseItems {
  const open = new Map<number, ItemOf<"agentMessage"> | ItemOf<"reasoning">>();
  const planned = new Map<number, PlannedText>();
  const sections = new Map<number, number>();

  function plannedAt(index: number): PlannedText | undefined {
    const text = planned.get(index) ?? openText?.();
    if (text !== undefined) planned.set(index, text);
    return text;
  }

  async function ensure(index: number, make: () => ItemOf<"agentMessage"> | ItemOf<"reasoning">): Promise<Item> {
    const known = open.get(index);
    if (known !== undefined) return known;
    const item = make();
    open.set(index, item);
    await io.record([{ type: "item.started", v: 1, turnId, item }]);
    return item;
  }

  async function searched(search: WebSearch): Promise<void> {
    const item = { type: "webSearch", id: newItemId(), search } as const;
    await io.record([{ type: "item.started", v: 1, turnId, item }]);
    await io.record([{ type: "item.completed", v: 1, turnId, item }]);
  }

  return {
    async text({ index, delta, phase }) {
      const plan = plannedAt(index);
      if (plan !== undefined) return plan.say(delta);
      const item = await ensure(index, () => newMessage(phase));
      io.stream({ itemId: item.id, channel: "text", delta });
    },
    async reasoning({ index, channel, section, delta }) {
      const item = await ensure(index, () => ({ type: "reasoning", id: newItemId(), summary: [] }));
      const isNewSection = channel === "summary" && section > (sections.get(index) ?? 0);
      if (isNewSection) sections.set(index, section);
      io.stream({
        itemId: item.id,
        channel: channel === "summary" ? "reasoningSummary" : "reasoningText",
        delta: isNewSection ? `\n\n${delta}` : delta,
      });
    },
    async complete(index, part) {
      if (part.kind === "reasoning" && part.search !== undefined) return searched(part.search);
      if (part.kind === "toolCall" || isSilent(part, provider)) return;
      const plan = part.kind === "text" ? plannedAt(index) : undefined;
      if (part.kind === "text" && plan !== undefined) return plan.complete(part.text);
      const started = await ensure(index, () =>
        part.kind === "text" ? newMessage(part.phase) : { type: "reasoning", id: newItemId(), summary: [] },
      );
      open.delete(index);
      await io.record([{ type: "item.completed", v: 1, turnId, item: finished(started.id, part) }]);
    },
    async breakOff() {
      open.clear();
      planned.clear();
      sections.clear();
      await io.closeOpenItems();
    },
  };
}

/**
 * Reasoning that only the provider can read makes no item, nor does text that is empty, unless the provider sent it as a
 * message of its own: then it is the last word.
 */
function isSilent(part: ModelOutputPart, { wire }: Provider): boolean {
  if (part.kind === "text") return part.text === "" && wire !== "openai-responses";
  return part.kind === "reasoning" && part.summary.length === 0 && (part.text ?? "") === "";
}

function newMessage(phase: MessagePhase | undefined): ItemOf<"agentMessage"> {
  return { type: "agentMessage", id: newItemId(), text: "", ...defined({ phase }) };
}

function finished(id: string, part: Extract<ModelOutputPart, { kind: "text" | "reasoning" }>): Item {
  if (part.kind === "text") {
    const { text, phase, sources } = part;
    return { type: "agentMessage", id, text, ...defined({ phase, sources }) };
  }
  return { type: "reasoning", id, summary: part.summary, ...(part.text === undefined ? {} : { text: part.text }) };
}
