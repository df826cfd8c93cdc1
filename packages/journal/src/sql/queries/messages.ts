import type { MessageKind, MessageOutcome } from "@heddle/protocol";
import { NOT_THERE } from "../../projections/messages.ts";
import type { MessageQueries, MessageRow } from "../../queries/messages.ts";
import { integer, optionalInteger, optionalText, text, wrongKind, type Row } from "../../record/rows.ts";
import { get, rowsAs, type Ask, type Value } from "../ask.ts";

const COLUMNS =
  "id, kind, author, from_thread, to_thread, sent_version, received_version, received_position, given_turn, answer_by, outcome, settled_stream, settled_version, at";
const SELECT = `SELECT ${COLUMNS} FROM messages WHERE`;
/** As the partial indexes are written. */
const WAITING = "given_turn IS NULL AND outcome IS NULL AND received_version > 0";
const LOOSE = "outcome IS NULL AND (received_version = 0 OR kind = 'ask')";

export function messageQueries(ask: Ask): MessageQueries {
  const rows = (sql: string, ...values: Value[]): Promise<readonly MessageRow[]> =>
    ask(() => rowsAs(`${SELECT} ${sql}`, toMessage, ...values));
  const count = (where: string, ...values: Value[]): Promise<number> =>
    ask(function* () {
      return integer(yield* get(`SELECT count(*) AS count FROM messages WHERE ${where}`, ...values), "count");
    });
  return {
    get: async (id) => (await rows("id = ?", id))[0],
    waiting: (threadId, { limit }) =>
      rows(`to_thread = ? AND ${WAITING} ORDER BY received_version LIMIT ?`, threadId, limit),
    countWaiting: (threadId) => count(`to_thread = ? AND ${WAITING}`, threadId),
    waitingThreads: ({ limit }) =>
      ask(() =>
        rowsAs(
          `SELECT DISTINCT to_thread FROM messages WHERE ${WAITING} ORDER BY to_thread LIMIT ?`,
          (row) => text(row, "to_thread"),
          limit,
        ),
      ),
    loose: ({ limit }) => rows(`${LOOSE} ORDER BY id LIMIT ?`, limit),
    openAsks: (from) => rows(`from_thread = ? AND ${LOOSE} AND kind = 'ask' ORDER BY id`, from),
    countSince: (sender, since) =>
      "thread" in sender
        ? count("from_thread = ? AND at >= ?", sender.thread, since)
        : count("author = ? AND from_thread IS NULL AND at >= ?", sender.author, since),
    of: (threadId, { limit }) =>
      rows("(to_thread = ? OR from_thread = ?) ORDER BY at DESC, id DESC LIMIT ?", threadId, threadId, limit),
  };
}

function toMessage(row: Row): MessageRow {
  const outcome = optionalText(row, "outcome");
  const stream = optionalText(row, "settled_stream");
  return {
    id: text(row, "id"),
    kind: kindIn(row),
    author: text(row, "author"),
    from: optionalText(row, "from_thread"),
    to: text(row, "to_thread"),
    sentVersion: there(row, "sent_version"),
    receivedVersion: there(row, "received_version"),
    receivedPosition: there(row, "received_position"),
    givenTurn: optionalText(row, "given_turn"),
    answerBy: optionalInteger(row, "answer_by"),
    settled:
      outcome === undefined || stream === undefined
        ? undefined
        : { outcome: outcomeIn(outcome), stream, version: integer(row, "settled_version") },
    at: integer(row, "at"),
  };
}

function there(row: Row, column: string): number | undefined {
  const version = integer(row, column);
  return version === NOT_THERE ? undefined : version;
}

function kindIn(row: Row): MessageKind {
  const kind = text(row, "kind");
  if (kind === "tell" || kind === "ask") return kind;
  throw wrongKind("kind");
}

const OUTCOMES: readonly MessageOutcome[] = ["answered", "refused", "expired", "withdrawn"];

function outcomeIn(stored: string): MessageOutcome {
  const outcome = OUTCOMES.find((known) => known === stored);
  if (outcome === undefined) throw wrongKind("outcome");
  return outcome;
}
