/** Pages of a list whose members have ids. A cursor names a member, and is valid as long as that member exists. */
import type { Journal, ThreadPageRequest } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";

export interface PageRequest {
  readonly cursor?: string | null | undefined;
  readonly limit?: number | null | undefined;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor: string | null;
  /** For the other direction, from the first of this page. */
  readonly backwardsCursor: string | null;
}

const DEFAULT_LIMIT = 25;
const MAX_LIMIT = 1_000;
const AFTER = "after:";
const FROM = "from:";

/** Of a whole list, in the order of its pages. */
export function pageOf<T>(list: readonly T[], { cursor, limit }: PageRequest, idOf: (member: T) => string): Page<T> {
  return pageFrom(list.slice(beginOf(list, cursor, idOf)), pageLimit(limit), idOf);
}

export interface CursorPosition {
  readonly id: string;
  readonly isIncluded: boolean;
}

export function cursorPosition(cursor: string | null | undefined): CursorPosition | undefined {
  if (cursor === undefined || cursor === null) return undefined;
  if (cursor.startsWith(AFTER)) return { id: cursor.slice(AFTER.length), isIncluded: false };
  if (cursor.startsWith(FROM)) return { id: cursor.slice(FROM.length), isIncluded: true };
  throw invalidCursor(cursor);
}

/** Of a list of threads, which the journal pages. */
export async function threadPosition(
  cursor: string | null | undefined,
  { threads }: Pick<Journal, "threads">,
): Promise<ThreadPageRequest["from"]> {
  const position = cursorPosition(cursor);
  if (position === undefined) return undefined;
  const thread = await threads.get(position.id);
  if (thread === undefined) throw invalidCursor(cursor ?? "");
  return { thread, isIncluded: position.isIncluded };
}

/** `list` begins with the page, and goes on behind it when there is a next one. */
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

function beginOf<T>(list: readonly T[], cursor: PageRequest["cursor"], idOf: (member: T) => string): number {
  const from = cursorPosition(cursor);
  if (from === undefined) return 0;
  const at = list.findIndex((member) => idOf(member) === from.id);
  if (at < 0) throw invalidCursor(cursor ?? "");
  return from.isIncluded ? at : at + 1;
}
