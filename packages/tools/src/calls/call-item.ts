/** The item, question and result of tools that show themselves as a plain call. */
import type { ApprovalQuestion, ItemOf } from "@heddle/protocol";
import type { CallPlace, ToolResult } from "./tool.ts";

export function callItem(tool: string, args: unknown, place: CallPlace): ItemOf<"toolCall"> {
  const { callId, itemId } = place;
  return { type: "toolCall", id: itemId, callId, tool, arguments: args, status: "inProgress" };
}

export function callQuestion(tool: string, args: unknown, place: CallPlace): ApprovalQuestion {
  const { callId, itemId } = place;
  return { kind: "tool", callId, itemId, tool, arguments: args };
}

export function callResult(item: ItemOf<"toolCall">, text: string): ToolResult {
  return {
    isError: false,
    item: { ...item, status: "completed", output: text },
    output: [{ type: "text", text }],
  };
}
