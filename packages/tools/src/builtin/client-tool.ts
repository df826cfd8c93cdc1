/** One tool that a client carries out: the call is an item in progress, and the client reports the result. */
import type { ClientTool, Failure, InputPart, ItemOf } from "@heddle/protocol";
import { z } from "./schema.ts";
import { callItem, jsonTool } from "../calls/call-item.ts";
import { clientToolName, type ClientTools } from "../calls/client-tools.ts";
import { fitText } from "../calls/fit-text.ts";
import type { CallContext, Tool, ToolResult } from "../calls/tool.ts";

const Arguments = z.record(z.string(), z.unknown());
/** A client may send megabytes; the model has to read them. */
const MAX_TEXT_BYTES = 64 * 1024;

export function clientTool(definition: ClientTool, { timeoutMs, answer }: ClientTools): Tool {
  const { name, namespace, description, parameters } = definition;
  const client = namespace === undefined ? {} : { namespace };
  const describe = (args: unknown, context: CallContext): ItemOf<"toolCall"> => ({
    ...callItem(name, args, context),
    client,
  });
  return jsonTool({
    name: clientToolName(definition),
    description,
    input: Arguments,
    parameters,
    // Heddle only sends a message; the rest is up to the client.
    effects: ["message"],
    isReadOnly: () => false,
    deadlineMs: () => timeoutMs,
    describe,
    async run(args, context) {
      const startedAt = performance.now();
      const { content, failure } = await answer(context.itemId, context.signal);
      const durationMs = Math.round(performance.now() - startedAt);
      const item = { ...describe(args, context), client: { ...client, content: [...content] }, durationMs };
      return resultOf(item, content, failure);
    },
  });
}

function resultOf(item: ItemOf<"toolCall">, content: readonly InputPart[], failure: Failure | undefined): ToolResult {
  const nothing: InputPart = { type: "text", text: failure?.message ?? "(no output)" };
  const output = content.length === 0 ? [nothing] : content.map(fitted);
  if (failure === undefined) return { isError: false, output, item: { ...item, status: "completed" } };
  return { isError: true, output, item: { ...item, status: "failed", error: failure.message }, failure };
}

function fitted(part: InputPart): InputPart {
  return part.type === "text" ? { type: "text", text: fitText(part.text, MAX_TEXT_BYTES) } : part;
}
