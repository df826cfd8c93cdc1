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
  const limit = pageLimit(wish.limit);
  const data = list.slice(begin, begin + limit);
  const [first, last] = [data[0], data.at(-1)];
  return {
    data,
    nextCursor: last !== undefined && begin + limit < list.length ? `${AFTER}${idOf(last)}` : null,
    backwardsCursor: first === undefined ? null : `${FROM}${idOf(first)}`,
  };
}

export interface CursorPlace {
  readonly id: string;
  readonly isIncluded: boolean;
}

/** For lists that are read page by page. */
export function placeOf(cursor: string | null | undefined): CursorPlace | undefined {
  if (cursor === undefined || cursor === null) return undefined;
  if (cursor.startsWith(AFTER)) return { id: cursor.slice(AFTER.length), isIncluded: false };
  if (cursor.startsWith(FROM)) return { id: cursor.slice(FROM.length), isIncluded: true };
  throw invalidCursor(cursor);
}

/** `list` has one more than a page when there is a next one. */
export function pageFrom<T>(list: readonly T[], limit: number, idOf: (member: T) => string): Page<T> {
  const data = list.slice(0, limit);
  const [first, last] = [data[0], data.at(-1)];
  return {
    data,
    nextCursor: last !== undefined && list.length > limit ? `${AFTER}${idOf(last)}` : null,
    backwardsCursor: first === undefined ? null : `${FROM}${idOf(first)}`,
  };
}

export function pageLimit(limit: number | null | undefined): number {
  return Math.min(MAX_LIMIT, Math.max(1, limit ?? DEFAULT_LIMIT));
}

export function invalidCursor(cursor: string): HeddleError {
  return new HeddleError("cursor.expired", `invalid cursor: ${cursor.slice(0, 200)}`);
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
  if (at < 0) throw invalidCursor(cursor);
  return at + offset;
}
