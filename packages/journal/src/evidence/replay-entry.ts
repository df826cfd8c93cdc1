/** A row of events, of the store or of a bundle, as the evaluator takes it, which knows no rows. */
import { integer, optionalText, text, type Row } from "../record/rows.ts";
import { bodyOf, READ_TYPES, type Entry } from "../replay/facts.ts";

/** `isPurged`: its body was removed, so that nothing can be said of it. */
export function toEntry(row: Row, isPurged: boolean): Entry {
  const type = text(row, "type");
  const body = bodyOf(type, optionalText(row, "body"));
  return {
    stream: text(row, "stream"),
    version: integer(row, "version"),
    at: integer(row, "at"),
    author: text(row, "author"),
    type,
    body,
    isUnread: body === undefined && (READ_TYPES.has(type) || isPurged),
  };
}
