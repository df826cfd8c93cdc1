/** The tools for messages as models are offered them, by the same names for every family; loaded only where agents may send. */
import { MESSAGE_TOOLS, type MessagePort, type MessageTool, type MessageToolEntry } from "../calls/messages.ts";
import type { Offer } from "../calls/registry.ts";
import offers from "./message-offers.json" with { type: "json" };

/** Generated like `offers.json`. */
const OFFERS = offers as Readonly<Record<MessageTool, Offer>>;

export function messageToolset(port: MessagePort): readonly MessageToolEntry[] {
  return MESSAGE_TOOLS.map((name) => ({
    name,
    offeredAs: name,
    offer: OFFERS[name],
    load: async () => (await import("./messages.ts")).messageTool(name, port),
  }));
}
