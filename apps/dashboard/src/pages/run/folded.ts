/**
 * Items of a thread as they stand: what was asked for, then what events say, then the newest pieces of what still runs.
 * A completed item is whole and replaces everything that was heard of it before.
 */
import type { Item, StreamedDelta, StreamedEvent } from "@heddle/protocol/http";
import type { Entry } from "./steps.ts";

/** Of one running item; its head is dropped, with a mark, when there is more. */
const MAX_LIVE_CHARS = 1_000_000;

export interface Grown {
  /** What checkpoints have stored, and what was heard since. */
  readonly stored: string;
  readonly live: string;
  readonly droppedChars: number;
  /** Where `live` begins in all that the item has added. */
  readonly liveFrom?: number;
}
export const NOT_GROWN: Grown = { stored: "", live: "", droppedChars: 0 };

export function foldItem(entries: readonly Entry[], event: StreamedEvent): readonly Entry[] {
  const { body, at, seq } = event;
  if (body.type !== "item.started" && body.type !== "item.completed") return entries;
  const { item, turnId } = body;
  const index = entries.findLastIndex((entry) => entry.item.id === item.id);
  const known = entries[index];
  if (known === undefined) {
    const completed = body.type === "item.completed" ? { completedAt: at } : {};
    return [...entries, { seq, turnId, item, startedAt: at, ...completed }];
  }
  if (body.type === "item.started") return entries;
  return entries.with(index, { ...known, item, completedAt: at });
}

/** With its place in the text what was heard of it is known exactly. What older servers stored has none: then the longest beginning that the checkpoint ends with was the same. */
export function checkpoint(grown: Grown, appended: string, offset?: number): Grown {
  const from = grown.liveFrom;
  if (offset !== undefined && from !== undefined) {
    const heardOf = Math.min(grown.live.length, Math.max(0, offset + appended.length - from));
    return bounded({
      ...grown,
      stored: grown.stored + appended,
      live: grown.live.slice(heardOf),
      liveFrom: from + heardOf,
    });
  }
  let overlap = Math.min(grown.live.length, appended.length);
  while (overlap > 0 && !appended.endsWith(grown.live.slice(0, overlap))) overlap -= 1;
  return bounded({ ...grown, stored: grown.stored + appended, live: grown.live.slice(overlap) });
}

/** `offset`: of the piece, in all that the item has added. */
export function grow(grown: Grown, piece: string, offset?: number): Grown {
  const liveFrom = grown.live === "" ? offset : grown.liveFrom;
  return bounded({ ...grown, live: grown.live + piece, ...(liveFrom === undefined ? {} : { liveFrom }) });
}

function bounded(grown: Grown): Grown {
  const over = grown.stored.length + grown.live.length - MAX_LIVE_CHARS;
  if (over <= 0) return grown;
  const fromStored = Math.min(over, grown.stored.length);
  return {
    ...grown,
    stored: grown.stored.slice(fromStored),
    live: grown.live.slice(over - fromStored),
    ...(grown.liveFrom === undefined ? {} : { liveFrom: grown.liveFrom + over - fromStored }),
    droppedChars: grown.droppedChars + over,
  };
}

/** The item with what it has added since it began. */
export function withGrown(item: Item, grown: Grown | undefined): Item {
  if (grown === undefined) return item;
  return withText(item, (textOf(item) ?? "") + grown.stored + grown.live);
}

/** Of an item that still grows: drawing all of it anew in every frame would take ever longer. */
const MAX_DRAWN_CHARS = 16_000;

/** The end of what has grown, from a line on where there is one; `droppedChars` is what comes before it. */
export function tailOf(item: Item): { readonly item: Item; readonly droppedChars: number } {
  const text = textOf(item);
  if (text === undefined || text.length <= MAX_DRAWN_CHARS) return { item, droppedChars: 0 };
  const cut = text.length - MAX_DRAWN_CHARS;
  const line = text.indexOf("\n", cut);
  const from = line < 0 || line - cut > MAX_DRAWN_CHARS / 2 ? cut : line + 1;
  return { item: withText(item, text.slice(from)), droppedChars: from };
}

function textOf(item: Item): string | undefined {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return item.text;
  return item.type === "commandExecution" ? item.output : undefined;
}

function withText(item: Item, text: string): Item {
  if (item.type === "agentMessage" || item.type === "proposedPlan") return { ...item, text };
  return item.type === "commandExecution" ? { ...item, output: text } : item;
}

export function isText({ channel }: Pick<StreamedDelta, "channel">): boolean {
  return channel === "text" || channel === "output";
}
