/** The end of an imported conversation for the model that goes on with it: what was said, not what was done. */
import type { ConversationEntry, EventOf, Item } from "@heddle/protocol";

/** As much as a runner is told that has not been there. */
const MAX_CHARS = 48_000;
const MAX_ENTRIES = 500;

export class Told {
  #entries: { readonly entry: ConversationEntry; readonly chars: number }[] = [];
  #chars = 0;

  add(item: Item): void {
    const told = entryOf(item);
    if (told === undefined) return;
    this.#entries.push(told);
    this.#chars += told.chars;
    while (this.#chars > MAX_CHARS || this.#entries.length > MAX_ENTRIES)
      this.#chars -= this.#entries.shift()?.chars ?? 0;
  }

  take(): readonly EventOf<"context.injected">[] {
    const entries = this.#entries.map(({ entry }) => entry);
    this.#entries = [];
    this.#chars = 0;
    return entries.length === 0 ? [] : [{ type: "context.injected", v: 1, entries }];
  }
}

function entryOf(item: Item): { readonly entry: ConversationEntry; readonly chars: number } | undefined {
  if (item.type === "userMessage") {
    const chars = item.content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
    return { entry: { kind: "user", parts: [...item.content] }, chars };
  }
  if (item.type !== "agentMessage") return undefined;
  return { entry: { kind: "assistant", parts: [{ kind: "text", text: item.text }] }, chars: item.text.length };
}
