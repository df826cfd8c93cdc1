/** The finished item of a call that did not come to its own end: refused, not understood, failed by throwing, or stopped. */
import type { Item, ItemStatus } from "@heddle/protocol";
import type { ToolCall } from "./decode.ts";
import type { CallPlace } from "./tool.ts";

type EndKind = "ok" | "failed" | "denied" | "cancelled";

interface Ending {
  readonly kind: EndKind;
  readonly message: string;
}

/** Enough to recognise what the model sent; the whole is in its recorded response. */
const MAX_ARGUMENT_CHARS = 4096;

export function unreadItem(call: ToolCall, place: CallPlace, ending: Ending): Item {
  const isCut = call.input.length > MAX_ARGUMENT_CHARS;
  return {
    type: "toolCall",
    id: place.itemId,
    callId: place.callId,
    tool: call.name.slice(0, 100),
    arguments: isCut ? `${call.input.slice(0, MAX_ARGUMENT_CHARS).toWellFormed()}…` : call.input.toWellFormed(),
    status: statusOf(ending.kind),
    error: ending.message,
  };
}

export function refusedItem(item: Item, ending: Ending): Item {
  // A person who stops the turn at a question has declined the call; it never began.
  return settledItem(item, "declined", ending.message);
}

export function settledItem(item: Item, status: ItemStatus, message: string): Item {
  if (!("status" in item)) return item;
  const hasReason = item.type !== "plan" && item.type !== "proposedPlan";
  return hasReason ? { ...item, status, error: message } : { ...item, status };
}

function statusOf(kind: EndKind): ItemStatus {
  switch (kind) {
    case "ok":
      return "completed";
    case "failed":
      return "failed";
    case "denied":
      return "declined";
    case "cancelled":
      return "interrupted";
  }
}
