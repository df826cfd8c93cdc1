/**
 * The record that an agent program keeps of its conversations, read only: where it is, how long it is now, and later the lines that
 * came after that. What lies there is whatever agents have written: no link is followed, nothing but a file is opened, and what is
 * read is bounded.
 */
import { readLines } from "@heddle/tools/lines";
import { keepingOf } from "./conversations.ts";
import type { AgentProgram } from "./find-program.ts";
import { openRecordFile } from "./record-file.ts";

/** Of one takeover; what a person and an agent say in a long day is a tenth of it. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Records whose names begin with the same characters. */
const MAX_NAMED_ALIKE = 10;

export interface RecordMark {
  readonly file: string;
  readonly bytes: number;
  /** Of a record that is no file of lines: the lines that came since. Undefined: it is not there any more. */
  readonly since?: () => Promise<AsyncIterable<RecordLine> | undefined>;
}

export type RecordLine =
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "tooLong" }
  | { readonly kind: "tooMuch" };

/** undefined: its record is not known, or not found. */
export async function markRecord(program: AgentProgram, handle: string): Promise<RecordMark | undefined> {
  if (program.record === "opencode") return (await import("./opencode-mark.ts")).markOpenCode(program, handle);
  const kept = await keepingOf(program)?.list(program, { handle, limit: MAX_NAMED_ALIKE });
  const file = kept?.conversations.find((one) => one.handle === handle)?.file;
  await using opened = file === undefined ? undefined : await openRecordFile(file);
  return file === undefined || opened === undefined ? undefined : { file, bytes: (await opened.stat()).size };
}

/** undefined: it is not there any more, or is shorter than it was. */
export async function* linesSince(mark: RecordMark): AsyncGenerator<RecordLine, "gone" | "read", undefined> {
  const { file, bytes, since } = mark;
  if (since !== undefined) {
    const lines = await since();
    if (lines === undefined) return "gone";
    try {
      yield* lines;
    } catch {
      return "gone";
    }
    return "read";
  }
  await using handle = await openRecordFile(file);
  const size = (await handle?.stat())?.size ?? 0;
  if (handle === undefined || size < bytes) return "gone";
  if (size === bytes) return "read";
  const end = Math.min(size, bytes + MAX_BYTES) - 1;
  const stream = handle.createReadStream({ start: bytes, end, autoClose: false });
  for await (const line of readLines(stream, { maxLineBytes: MAX_LINE_BYTES })) {
    if (line.kind === "lineTooLong") yield { kind: "tooLong" };
    else if (line.text.trim() !== "") yield { kind: "line", text: line.text };
  }
  if (size - bytes > MAX_BYTES) yield { kind: "tooMuch" };
  return "read";
}
