/**
 * The record that an agent program keeps of its conversations, read only: where it is, how long it is now, and later the lines that
 * came after that. What lies there is whatever agents have written: no link is followed, nothing but a file is opened, and what is
 * read is bounded.
 */
import { constants } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { readLines } from "@heddle/tools/lines";
import type { AgentProgram } from "./find-program.ts";

/** Of one takeover; what a person and an agent say in a long day is a tenth of it. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Folders that are looked into for the record. */
const MAX_FOLDERS = 20_000;

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
  if (program.protocol === "opencode") return (await import("./opencode-mark.ts")).markOpenCode(program, handle);
  const isOwn = NAMES[program.protocol];
  const [root] = program.folders;
  if (isOwn === undefined || root === undefined || !/^[\w-]+$/.test(handle)) return undefined;
  const { folder, depth, fits } = isOwn;
  const file = await find(path.join(root, folder), { depth, fits: (name) => fits(name, handle) });
  if (file === undefined) return undefined;
  await using handleOfFile = await openRecordFile(file);
  return handleOfFile && { file, bytes: (await handleOfFile.stat()).size };
}

interface RecordNames {
  readonly folder: string;
  /** Of folders below it. */
  readonly depth: number;
  readonly fits: (name: string, handle: string) => boolean;
}

// By year, month and day.
const OF_CODEX: RecordNames = {
  folder: "sessions",
  depth: 3,
  fits: (name, handle) => name.startsWith("rollout-") && name.endsWith(`-${handle}.jsonl`),
};

const NAMES: Partial<Record<AgentProgram["protocol"], RecordNames>> = {
  // By folder of work.
  claude: { folder: "projects", depth: 1, fits: (name, handle) => name === `${handle}.jsonl` },
  codex: OF_CODEX,
  "codex-exec": OF_CODEX,
};

interface Finding {
  readonly depth: number;
  readonly fits: (name: string) => boolean;
}

/** The newest folders first, as they are named by date. */
async function find(root: string, { depth, fits }: Finding): Promise<string | undefined> {
  let left = MAX_FOLDERS;
  async function look(folder: string, below: number): Promise<string | undefined> {
    if ((left -= 1) < 0) return undefined;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const file = entries.find((entry) => entry.isFile() && fits(entry.name));
    if (file !== undefined) return path.join(folder, file.name);
    if (below === 0) return undefined;
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    for (const name of folders.toSorted().toReversed()) {
      const found = await look(path.join(folder, name), below - 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const real = await realpath(root).catch(() => undefined);
  return real === undefined ? undefined : look(real, depth);
}

/** undefined: it is no file, or a link leads to it. */
export async function openRecordFile(file: string) {
  // An agent may have put a link in the place of a folder since.
  if ((await realpath(file).catch(() => undefined)) !== file) return undefined;
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined || (await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
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
