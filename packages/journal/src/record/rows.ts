/** Rows as they come from a store, checked. A row of the wrong kind is damage, not a crash. */
import { HeddleError, readAuthor, upcast, type Author, type EventBody, type StoredEvent } from "@heddle/protocol";
import { measured } from "./breathe.ts";
import { sha256, type Link } from "./chain.ts";

export type Row = Readonly<Record<string, unknown>>;

export const EVENT_COLUMNS =
  "position, stream, version, id, at, author, type, v, body, body_hash, prev_hash, hash" as const;

export function text(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value === "string") return value;
  throw wrongKind(column);
}

export function integer(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value === "number") return value;
  throw wrongKind(column);
}

export function optionalText(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column);
}

export function optionalInteger(row: Row, column: string): number | undefined {
  return row[column] === null ? undefined : integer(row, column);
}

export function wrongKind(column: string): HeddleError {
  return new HeddleError("store.damaged", `the store has a row without a proper ${column}`);
}

export function toEvent(row: Row): StoredEvent {
  const stream = text(row, "stream");
  const version = integer(row, "version");
  const body = optionalText(row, "body");
  if (body === undefined) {
    throw new HeddleError("store.purged", `the content of event ${version} of ${stream} was purged by the owner`);
  }
  return {
    position: integer(row, "position"),
    stream,
    version,
    id: text(row, "id"),
    at: integer(row, "at"),
    author: toAuthor(text(row, "author")),
    body: parse(body, row["body_hash"], { stream, version }),
    hash: text(row, "hash"),
    prevHash: text(row, "prev_hash"),
  };
}

function parse(body: string, hash: unknown, where: { readonly stream: string; readonly version: number }): EventBody {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (cause) {
    const message = `the content of event ${where.version} of ${where.stream} is damaged`;
    throw new HeddleError("store.damaged", message, { cause, details: where });
  }
  if (sha256(body) === hash) return measured(upcast(parsed), body.length);
  if (checkEvent === undefined) throw new UncheckedShape();
  return measured(checkEvent(parsed), body.length);
}

/** Loaded with the first body that was altered: healthy stores never need it. */
let checkEvent: ((stored: unknown) => EventBody) | undefined;

class UncheckedShape extends Error {}

/** Reads again with all schemas loaded where a body has to be checked. */
export async function withShapes<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof UncheckedShape)) throw error;
    ({ checkEvent } = await import("@heddle/protocol/check-event"));
    return await read();
  }
}

function toAuthor(stored: string): Author {
  const author = readAuthor(stored);
  if (author === undefined) throw wrongKind("author");
  return author;
}

export function toLink(row: Row): Link {
  return {
    id: text(row, "id"),
    stream: text(row, "stream"),
    version: integer(row, "version"),
    at: integer(row, "at"),
    author: text(row, "author"),
    type: text(row, "type"),
    v: integer(row, "v"),
    bodyHash: text(row, "body_hash"),
    prevHash: text(row, "prev_hash"),
  };
}
