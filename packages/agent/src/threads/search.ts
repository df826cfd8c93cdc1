import { setImmediate } from "node:timers/promises";
import { HeddleError, type EventBody, type Item } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { isKept, readPlan, type Past } from "./past.ts";

export interface Found {
  readonly threadId: string;
  /** The text around the newest match, on one line. */
  readonly snippet: string;
}

/** Events searched before others get their turn. */
const STEP_EVENTS = 2_000;
const MAX_THREADS = 1_000;
const DEADLINE_MS = 10_000;
const AROUND_CHARS = 60;
/** The store compares the text at every place of what was said, and nothing else runs meanwhile. */
const MAX_TEXT_CHARS = 256;

/** Newest match first. Throws `limit.reached` when the store is too large to search in time. */
export async function searchThreads(journal: Journal, text: string): Promise<readonly Found[]> {
  if (text.length > MAX_TEXT_CHARS)
    throw new HeddleError("usage.invalid", `a search has at most ${MAX_TEXT_CHARS} characters; use a shorter query`);
  const until = performance.now() + DEADLINE_MS;
  const found = new Map<string, Found>();
  const pasts = new Map<string, Promise<Past>>();
  const isReverted = async (threadId: string, turnId: string): Promise<boolean> => {
    const past = pasts.get(threadId) ?? readPlan(journal, threadId);
    pasts.set(threadId, past);
    const turn = await journal.threads.turn(turnId);
    return turn !== undefined && !isKept(await past, turn);
  };
  let below = (await journal.position()) + 1;
  while (below > 1 && found.size < MAX_THREADS) {
    if (performance.now() > until)
      throw new HeddleError("limit.reached", "the search took too long; use a longer query");
    const step = await journal.threads.mentions({ text, below, events: STEP_EVENTS });
    if (step.lowest === 0) break;
    for (const { stream: threadId, body } of step.found) {
      const snippet = found.has(threadId) ? undefined : snippetOf(textOf(body), text);
      if (snippet === undefined) continue;
      if ("turnId" in body && (await isReverted(threadId, body.turnId))) continue;
      found.set(threadId, { threadId, snippet });
    }
    below = step.lowest;
    await setImmediate();
  }
  return [...found.values()];
}

function textOf(body: EventBody): string {
  if (body.type === "thread.named") return body.name;
  return body.type === "item.completed" ? itemText(body.item) : "";
}

function itemText(item: Item): string {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return item.text;
  if (item.type !== "userMessage") return "";
  return item.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

function snippetOf(content: string, text: string): string | undefined {
  const at = content.toLowerCase().indexOf(text.toLowerCase());
  if (at === -1) return undefined;
  const from = Math.max(0, at - AROUND_CHARS);
  const to = at + text.length + AROUND_CHARS;
  const cut = content.slice(from, to).replaceAll(/\s+/gu, " ").trim();
  return `${from > 0 ? "…" : ""}${cut}${to < content.length ? "…" : ""}`;
}
