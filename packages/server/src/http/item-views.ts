/** Items as clients are shown them, in pages from either end of a thread. Every answer is read from the journal. */
import type { Journal } from "@heddle/journal";
import { grownItem, type Item } from "@heddle/protocol";
import type { ItemEntry, ItemPage } from "@heddle/protocol/http";
import type { z } from "zod";
import { eventsAfter } from "./views.ts";

type Entry = z.output<typeof ItemEntry>;
type Page = z.output<typeof ItemPage>;

export interface ItemsRequest {
  readonly after: number;
  readonly limit: number;
  readonly turnId: string | undefined;
}

/** In the order they started. An item that has ended is shown as it ended, one that runs with what is stored of it. */
export async function itemEntries(
  journal: Journal,
  threadId: string,
  { after, limit, turnId }: ItemsRequest,
): Promise<Pick<Page, "data" | "nextAfter">> {
  const entries = new Map<string, Entry>();
  let open = 0;
  let hasMore = false;
  const turn = turnId === undefined ? undefined : await journal.threads.turn(turnId);
  if (turnId !== undefined && turn?.threadId !== threadId) return { data: [], nextAfter: null };
  const begin = Math.max(after, (turn?.admittedVersion ?? 1) - 1);
  for await (const { body, at, version } of eventsAfter(journal, threadId, begin)) {
    // Every item of a turn has ended with it.
    if (version > (turn?.endedVersion ?? Infinity)) break;
    if (body.type === "item.started" && (turnId ?? body.turnId) === body.turnId) {
      hasMore = entries.size === limit;
      if (hasMore && open === 0) break;
      if (hasMore) continue;
      entries.set(body.item.id, { seq: version, turnId: body.turnId, item: body.item, startedAt: at });
      open += 1;
    }
    if (body.type === "item.checkpointed") {
      const entry = entries.get(body.itemId);
      if (entry?.completedAt !== undefined || entry === undefined) continue;
      entries.set(body.itemId, { ...entry, item: grownItem(entry.item, body.appended) });
    }
    if (body.type !== "item.completed") continue;
    const entry = entries.get(body.item.id);
    if (entry === undefined || entry.completedAt !== undefined) continue;
    entries.set(body.item.id, { ...entry, item: body.item, completedAt: at });
    open -= 1;
    if (hasMore && open === 0) break;
  }
  const data = [...entries.values()];
  return { data, nextAfter: hasMore ? (data.at(-1)?.seq ?? null) : null };
}

/** The last ones that started before a version, in the order they started. It costs the same wherever that is. */
export async function itemsBefore(
  journal: Journal,
  threadId: string,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<Page> {
  const starts = await journal.threads.itemStarts(threadId, { before, limit: limit + 1 });
  const wanted = starts.slice(-limit);
  const [first] = wanted;
  if (first === undefined) return { data: [], nextAfter: null, nextBefore: null };
  const { data } = await itemEntries(journal, threadId, { after: first - 1, limit: wanted.length, turnId: undefined });
  return { data, nextAfter: data.at(-1)?.seq ?? null, nextBefore: starts.length > limit ? first : null };
}

/** Arguments of a call up to this are kept: they say what it is. */
const MAX_ARGUMENTS_CHARS = 4_000;

/** Without what makes an item large; what is left out is counted. */
export function briefEntry(entry: Entry): Entry {
  const item = briefItem(entry.item);
  const leftOutChars = item === entry.item ? 0 : JSON.stringify(entry.item).length - JSON.stringify(item).length;
  return leftOutChars <= 0 ? entry : { ...entry, item, leftOutChars };
}

function briefItem(item: Item): Item {
  switch (item.type) {
    case "commandExecution":
      return item.output === "" ? item : { ...item, output: "" };
    case "fileChange":
      return { ...item, changes: item.changes.map((change) => ({ ...change, diff: "" })) };
    case "toolCall": {
      const { output: _, client, ...rest } = item;
      const { content: __, ...caller } = client ?? {};
      return {
        ...rest,
        arguments: briefArguments(item.arguments),
        ...(client === undefined ? {} : { client: caller }),
      };
    }
    case "mcpToolCall": {
      const { result: _, ...rest } = item;
      return { ...rest, arguments: briefArguments(item.arguments) };
    }
    case "userMessage":
      return {
        ...item,
        content: item.content.map((part) => (part.type === "image" ? { ...part, base64: "" } : part)),
      };
    default:
      return item;
  }
}

function briefArguments(given: unknown): unknown {
  return (JSON.stringify(given) ?? "").length > MAX_ARGUMENTS_CHARS ? {} : given;
}
