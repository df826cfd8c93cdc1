/**
 * Which part of an answer an item event belongs to. Servers leave `output_index` out or repeat it, and some give an item
 * another id in every event. So: the id of a call or an item first, then the index, then the order. Each item is one part,
 * however often it is sent; two items are never one part.
 */
import type { Provider } from "../providers/providers.ts";
import { parseJson } from "./untrusted.ts";
import { requireFewParts } from "./wire.ts";

/** What an event says about its item; absent: nothing. */
export interface Seen {
  /** The type of the item. */
  readonly kind: string;
  readonly id?: string | undefined;
  readonly callId?: string | undefined;
  readonly index?: number | undefined;
}

export interface SeenWhole extends Seen {
  readonly content: string;
}

interface Slot {
  readonly kind: string;
  readonly position: number;
  readonly ids: Set<string>;
  readonly index: number | undefined;
  readonly isAnnounced: boolean;
  callId: string | undefined;
  /** Absent until the item is whole. */
  content?: string;
}

export interface PartSlots {
  /** An item begins. */
  announce(seen: Seen): number;
  /** A piece of an item. */
  piece(seen: Seen): number;
  /** An item is whole; undefined: it was before. */
  whole(seen: SeenWhole): number | undefined;
  /** The end repeats the items: the position of each, and whether it is new. */
  repeated(items: readonly SeenWhole[]): readonly { readonly position: number; readonly isNew: boolean }[];
  /** Items that began and never became whole. */
  unfinished(): readonly { readonly position: number; readonly kind: string }[];
}

export function createPartSlots(provider: Provider): PartSlots {
  const slots: Slot[] = [];
  const used = new Set<number>();
  let next = 0;

  function open(seen: Seen, isAnnounced: boolean): Slot {
    requireFewParts(provider, slots.length);
    const { kind, index, callId } = seen;
    const position = index === undefined || used.has(index) ? next : index;
    used.add(position);
    next = Math.max(next, position + 1);
    const slot: Slot = { kind, position, index, callId, ids: new Set(), isAnnounced };
    slots.push(slot);
    return slot;
  }

  function note(slot: Slot, { id, callId }: Seen): Slot {
    if (id !== undefined) slot.ids.add(id);
    slot.callId ??= callId;
    return slot;
  }

  function close(slot: Slot, seen: SeenWhole): number {
    note(slot, seen).content = seen.content;
    return slot.position;
  }

  const openOf = ({ kind }: Seen): readonly Slot[] =>
    slots.filter((slot) => slot.kind === kind && slot.content === undefined);
  /** An announced item may carry another id in every event, but never another call id. */
  const atIndex = (slot: Slot, seen: Seen): boolean =>
    seen.index !== undefined && slot.index === seen.index && fits(slot, seen, slot.isAnnounced);
  const inOrder = (slot: Slot, seen: Seen): boolean =>
    (seen.index === undefined || slot.index === undefined) && fits(slot, seen);

  return {
    announce(seen) {
      return note(openOf(seen).find((slot) => isSame(slot, seen)) ?? open(seen, true), seen).position;
    },
    piece(seen) {
      const known = openOf(seen);
      const slot =
        known.findLast((one) => isSame(one, seen)) ??
        known.findLast((one) => atIndex(one, seen)) ??
        known.findLast((one) => inOrder(one, seen)) ??
        open(seen, false);
      return note(slot, seen).position;
    },
    whole(seen) {
      const known = openOf(seen);
      const own = known.find((slot) => isSame(slot, seen));
      if (own !== undefined) return close(own, seen);
      if (slots.some((slot) => slot.kind === seen.kind && isRepeat(slot, seen))) return undefined;
      const slot =
        known.find((one) => atIndex(one, seen)) ?? known.find((one) => inOrder(one, seen)) ?? open(seen, false);
      return close(slot, seen);
    },
    repeated(items) {
      const left = new Set(slots);
      const found = new Map<SeenWhole, Slot>();
      const tests: readonly ((slot: Slot, seen: SeenWhole) => boolean)[] = [
        (slot, seen) => isSame(slot, seen) && slot.content === seen.content,
        isSame,
        (slot, seen) => slot.content === seen.content && fits(slot, seen, true),
        (slot, seen) => fits(slot, seen, slot.content === undefined),
      ];
      for (const test of tests) {
        for (const seen of items) {
          if (found.has(seen)) continue;
          const slot = [...left].find((one) => one.kind === seen.kind && test(one, seen));
          if (slot === undefined) continue;
          left.delete(slot);
          found.set(seen, slot);
        }
      }
      return items.map((seen) => {
        const slot = found.get(seen);
        const isNew = slot?.content === undefined;
        return { position: isNew ? close(slot ?? open(seen, false), seen) : slot.position, isNew };
      });
    },
    unfinished: () => slots.filter(({ content }) => content === undefined),
  };
}

/** The same by its id: that of a call where both have one. */
function isSame(slot: Slot, { id, callId }: Seen): boolean {
  if (slot.callId !== undefined && callId !== undefined) return slot.callId === callId;
  return id !== undefined && slot.ids.has(id);
}

/** Nothing says that it is another one. */
function fits(slot: Slot, { id, callId }: Seen, mayRename = false): boolean {
  if (slot.callId !== undefined && callId !== undefined) return slot.callId === callId;
  return mayRename || id === undefined || slot.ids.size === 0 || slot.ids.has(id);
}

/** Sent again as it was. Servers give one id to different items, so an id alone does not make it one. */
function isRepeat(slot: Slot, seen: SeenWhole): boolean {
  if (slot.content !== seen.content) return false;
  return isSame(slot, seen) || (seen.index !== undefined && slot.index === seen.index && fits(slot, seen));
}

/** What tells two calls apart: servers write the same arguments with other spaces. */
export function callContent(name: string, input: string): string {
  const value = parseJson(input);
  return `${name}\n${value === undefined ? input : JSON.stringify(value)}`;
}
