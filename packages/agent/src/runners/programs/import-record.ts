/** What a person and an agent did in the agent's own interface, as items of the turn in which the person had the thread. */
import { HeddleError } from "@heddle/protocol";
import { admissionOf, NOTHING_SPENT } from "../../turns/outcome.ts";
import { userMessage, warning } from "../notes.ts";
import type { RunnerEvent, Spent, TurnIo, TurnRequest } from "../runner.ts";
import type { ItemsTurn } from "./claude-items.ts";
import type { AgentProgram } from "./find-program.ts";
import { createItemLog } from "./item-log.ts";
import { linesSince, type RecordMark } from "./own-record.ts";
import { createSpending } from "./program-runner.ts";
import { RECORD_READERS } from "./record-readers.ts";

/** More than a person reads; the agent's own record has the rest. */
const MAX_ITEMS = 5000;
/** Different kinds of lines; a program that makes them up must not fill the record. */
const MAX_KINDS = 50;

export interface ImportingTurn extends ItemsTurn {
  /** What the person said. */
  readonly said: (text: string) => Promise<void>;
}

/** Reads one kind of record, line by line. */
export interface RecordReader {
  heard(line: unknown): Promise<void>;
  /** On record already, by an earlier import; only of a record that tells of one thing more than once. */
  skipped?(line: unknown): void;
  /** A request that was broken off is told too. */
  finish(): Promise<void>;
}

export interface Imported {
  readonly spent: Spent;
  /** Lines that Heddle does not know, by kind. */
  readonly unknown: ReadonlyMap<string, number>;
}

export interface Importing {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly program: AgentProgram;
  /** Where its record ended when the person came; undefined: there is none that could be read. */
  readonly mark: RecordMark | undefined;
}

/** Never fails for what the record holds: what could not be read is told in a notice. */
export async function importRecord({ turn, io, program, mark }: Importing): Promise<Imported> {
  const { turnId } = turn;
  const { runner } = program;
  const tell = async (message: string): Promise<void> =>
    void (await io.record(warning(turnId, "runner.not-imported", message), "system"));
  const reader = program.record && RECORD_READERS[program.record];
  if (reader === undefined || mark === undefined) {
    const why =
      reader === undefined
        ? "Heddle does not know what this program keeps of its conversations"
        : "this program has kept no record of this conversation where Heddle looks for it";
    await tell(`what was done with ${runner} in the terminal is not on record here: ${why}`);
    return { spent: NOTHING_SPENT, unknown: new Map() };
  }
  const bounded = boundedIo(io);
  const unknown = new Map<string, number>();
  const count = (kind: string): void => {
    const name = unknown.has(kind) || unknown.size < MAX_KINDS ? kind.slice(0, 100) : "others";
    unknown.set(name, (unknown.get(name) ?? 0) + 1);
  };
  const spending = createSpending(runner, turn, bounded);
  const { by } = admissionOf(turn);
  const reading = reader({
    workspace: turn.workspace,
    items: createItemLog(turnId, bounded),
    unknown: count,
    spent: (call) => spending.add(call),
    said: async (text) => void (await bounded.record(userMessage(turnId, [{ type: "text", text }]), by)),
  });
  const left = await readAll(mark, reading, count);
  if (left !== undefined) await tell(`not everything from the terminal is on record here: ${left}`);
  return { spent: spending.total, unknown };
}

/** What was left out; undefined: nothing. */
async function readAll(
  mark: RecordMark,
  reading: RecordReader,
  count: (kind: string) => void,
): Promise<string | undefined> {
  let long = 0;
  const lines = linesSince(mark);
  try {
    for (;;) {
      const next = await lines.next();
      if (next.done === true) {
        await reading.finish();
        if (next.value === "gone") return "the agent's own record was replaced meanwhile";
        return long === 0 ? undefined : `${long} lines of its own record are too long`;
      }
      const line = next.value;
      if (line.kind === "tooLong") long += 1;
      else if (line.kind === "tooMuch") return "its own record has grown by more than is read";
      else await hear(line.text, reading, count);
    }
  } catch (error) {
    if (error instanceof TooMuch) return error.message;
    throw error;
  } finally {
    await lines.return("read");
  }
}

async function hear(text: string, reading: RecordReader, count: (kind: string) => void): Promise<void> {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return count("text");
  }
  await reading.heard(line);
}

class TooMuch extends HeddleError {
  constructor() {
    super("limit.reached", `only the first ${MAX_ITEMS} items are kept`);
  }
}

/** An item that has begun is ended. */
function boundedIo(io: TurnIo): Pick<TurnIo, "record" | "stream" | "signal"> {
  let items = 0;
  return {
    signal: io.signal,
    stream: () => undefined,
    async record(events: readonly RunnerEvent[], author) {
      const begun = events.filter(({ type }) => type === "item.started").length;
      if (begun > 0 && items + begun > MAX_ITEMS) throw new TooMuch();
      items += begun;
      return io.record(events, author);
    },
  };
}
