/** Items of the Responses API that clients inject, as Heddle's conversation entries. */
import { z } from "zod";
import { dataImage } from "./input.ts";
import type { ConversationEntry, InputPart, ModelOutputPart } from "@heddle/protocol";

const Content = z.union([
  z.string(),
  z.array(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("input_text"), text: z.string() }),
      z.object({ type: z.literal("output_text"), text: z.string() }),
      z.object({ type: z.literal("input_image"), image_url: z.string() }),
    ]),
  ),
]);
type Content = z.infer<typeof Content>;

const RawItem = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message"),
    role: z.enum(["user", "assistant", "developer", "system"]),
    content: Content,
  }),
  z.object({ type: z.literal("function_call"), call_id: z.string(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal("custom_tool_call"), call_id: z.string(), name: z.string(), input: z.string() }),
  z.object({ type: z.literal("function_call_output"), call_id: z.string(), output: Content }),
  z.object({ type: z.literal("custom_tool_call_output"), call_id: z.string(), output: Content }),
]);
const AnyItem = z.object({ type: z.string() });

const KNOWN: ReadonlySet<string> = new Set(RawItem.options.map(({ shape }) => shape.type.value));

export type ReadItems =
  | {
      readonly kind: "entries";
      readonly entries: readonly ConversationEntry[];
      /** Types that mean nothing to other models, such as thoughts that only their own provider can read. */
      readonly passedOver: readonly string[];
    }
  | { readonly kind: "invalid"; readonly message: string };

export function injectedEntries(items: readonly unknown[]): ReadItems {
  const entries: ConversationEntry[] = [];
  const passedOver = new Set<string>();
  const calls = new Map<string, { readonly name: string; readonly shape: "json" | "freeform" }>();
  for (const [index, raw] of items.entries()) {
    const parsed = RawItem.safeParse(raw);
    if (!parsed.success) {
      const other = AnyItem.safeParse(raw);
      if (!other.success || KNOWN.has(other.data.type)) {
        return { kind: "invalid", message: `items[${index}] is not a valid response item` };
      }
      passedOver.add(other.data.type);
      continue;
    }
    const item = parsed.data;
    switch (item.type) {
      case "message": {
        const parts = partsOf(item.content);
        if (parts === undefined)
          return { kind: "invalid", message: `items[${index}] has an image that is not a data: URL` };
        entries.push(item.role === "assistant" ? entryOf(parts) : { kind: "user", parts: [...parts] });
        break;
      }
      case "function_call":
      case "custom_tool_call": {
        const shape = item.type === "function_call" ? "json" : "freeform";
        const input = item.type === "function_call" ? item.arguments : item.input;
        calls.set(item.call_id, { name: item.name, shape });
        join(entries, { kind: "toolCall", callId: item.call_id, name: item.name, input, shape });
        break;
      }
      case "function_call_output":
      case "custom_tool_call_output": {
        const parts = partsOf(item.output);
        const call = calls.get(item.call_id);
        if (parts === undefined || call === undefined)
          return { kind: "invalid", message: `items[${index}] is an output without a call before it` };
        entries.push({ kind: "toolResult", callId: item.call_id, ...call, isError: false, parts: [...parts] });
        break;
      }
    }
  }
  return { kind: "entries", entries, passedOver: [...passedOver] };
}

/** Calls of one answer belong together. */
function join(entries: ConversationEntry[], part: ModelOutputPart): void {
  const last = entries.at(-1);
  if (last?.kind === "assistant") last.parts.push(part);
  else entries.push({ kind: "assistant", parts: [part] });
}

function entryOf(parts: readonly InputPart[]): ConversationEntry {
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  return { kind: "assistant", parts: [{ kind: "text", text }] };
}

/** undefined: an image is not in its URL. */
function partsOf(content: Content): readonly InputPart[] | undefined {
  if (typeof content === "string") return [{ type: "text", text: content }];
  const parts = content.map((part): InputPart | undefined =>
    part.type === "input_image" ? dataImage(part.image_url) : { type: "text", text: part.text },
  );
  return parts.every((part) => part !== undefined) ? parts : undefined;
}
