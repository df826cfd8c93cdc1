/** Pages of a list whose members have ids. A cursor names a member; it stays good while that member is there. */
import { HeddleError } from "@heddle/protocol";

export interface PageWish {
  readonly cursor?: string | null | undefined;
  readonly limit?: number | null | undefined;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor: string | null;
  /** To go the other way, beginning with the first of this page. */
  readonly backwardsCursor: string | null;
}

const DEFAULT_LIMIT = 25;
const MAX_LIMIT = 1_000;
const AFTER = "after:";
const FROM = "from:";

/** `list` is in the wished order. */
export function pageOf<T>(list: readonly T[], wish: PageWish, idOf: (member: T) => string): Page<T> {
  const begin = beginOf(list, wish.cursor ?? undefined, idOf);
  const limit = Math.min(MAX_LIMIT, Math.max(1, wish.limit ?? DEFAULT_LIMIT));
  const data = list.slice(begin, begin + limit);
  const [first, last] = [data[0], data.at(-1)];
  return {
    data,
    nextCursor: last !== undefined && begin + limit < list.length ? `${AFTER}${idOf(last)}` : null,
    backwardsCursor: first === undefined ? null : `${FROM}${idOf(first)}`,
  };
}

export function afterCursor(id: string): string {
  return `${AFTER}${id}`;
}

export function fromCursor(id: string): string {
  return `${FROM}${id}`;
}

function beginOf<T>(list: readonly T[], cursor: string | undefined, idOf: (member: T) => string): number {
  if (cursor === undefined) return 0;
  const [mark, offset] = cursor.startsWith(AFTER) ? ([AFTER, 1] as const) : ([FROM, 0] as const);
  const id = cursor.startsWith(mark) ? cursor.slice(mark.length) : undefined;
  const at = id === undefined ? -1 : list.findIndex((member) => idOf(member) === id);
  if (at < 0) throw new HeddleError("cursor.expired", `invalid cursor: ${cursor.slice(0, 200)}`);
  return at + offset;
}
