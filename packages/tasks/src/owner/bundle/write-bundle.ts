/** Writes a bundle. It is streamed, whatever the size of the workspace, and is there whole or not at all. */
import { createHash, randomBytes } from "node:crypto";
import { constants, createWriteStream } from "node:fs";
import { link, lstat, open, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { HeddleError, reasonOf, type TaskRecord } from "@heddle/protocol";
import { seal, type Journal } from "@heddle/journal";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { baseFolder, beforeFolder, workFolder } from "../../judge/task-rooms.ts";
import { readFrozenWork } from "../../tree/freeze-work.ts";
import { readKeptTree } from "../../tree/keep-tree.ts";
import type { FrozenWork, KeptTree, RawPath } from "../../tree/manifest.ts";
import { lastJudgement, readLog } from "../recorded.ts";
import { FORMAT, PIECE_BYTES, toRow, type BundleLine } from "./bundle-lines.ts";

export interface WriteBundle {
  readonly journal: Journal;
  readonly home: string;
  readonly task: TaskRecord;
  /** A new file. */
  readonly file: string;
  readonly signal: AbortSignal;
}

export interface Written {
  readonly file: string;
  readonly bytes: number;
  readonly files: number;
}

/** `task.illegal` when it was never judged, or what was kept of it is gone. */
export async function writeBundle({ journal, home, task, file, signal }: WriteBundle): Promise<Written> {
  const round = lastJudgement(await readLog(journal, task.id))?.checked.round;
  const base = await readKeptTree(baseFolder(home, task.id));
  const frozen = round === undefined ? undefined : await readFrozenWork(workFolder(home, task.id, round));
  if (round === undefined || base === undefined || frozen === undefined)
    throw new HeddleError(
      "task.illegal",
      round === undefined
        ? `task ${task.id} was never judged; heddle task show ${task.id} shows its state`
        : `what task ${task.id} was judged by no longer exists; heddle task collect removes it for tasks that ended long ago`,
    );
  const before = await readFrozenWork(beforeFolder(home, task.id));
  const fresh = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const lines = sealed(linesOf({ journal, task, base, frozen, before, round }), home);
    await pipeline(Readable.from(lines), createGzip(), createWriteStream(fresh, { flags: "wx", mode: 0o600 }), {
      signal,
    });
    // Never over another file.
    await link(fresh, file);
    return { file, bytes: (await lstat(file)).size, files: base.manifest.size + frozen.changes.length };
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof HeddleError) throw cause;
    throw new HeddleError("usage.invalid", `the bundle ${file} cannot be written: ${reasonOf(cause)}`, { cause });
  } finally {
    await rm(fresh, { force: true });
  }
}

interface Bundled {
  readonly journal: Journal;
  readonly task: TaskRecord;
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
  /** Takes back what agents of earlier tasks left. */
  readonly before: FrozenWork | undefined;
  readonly round: number;
}

async function* linesOf({ journal, task, base, frozen, before, round }: Bundled): AsyncGenerator<BundleLine> {
  yield { kind: "header", format: FORMAT, v: 1, task: task.id };
  for await (const line of journal.exportLines([{ stream: task.id }])) yield { kind: "record", line };
  yield { kind: "tree", skipped: [...base.skipped] };
  for (const [path, entry] of base.manifest) {
    yield { kind: "entry", path, entry: toRow(entry) };
    if (entry.kind === "file") yield* contentOf(base.folder, path, entry.size);
  }
  yield { kind: "work", round };
  yield* changesOf(frozen);
  if (before === undefined) return;
  yield { kind: "before" };
  yield* changesOf(before);
}

async function* changesOf({ folder, changes }: FrozenWork): AsyncGenerator<BundleLine> {
  for (const { how, path, now, before } of changes) {
    const hasContent = now?.kind === "file" && (await isThere(folder, path));
    yield {
      kind: "change",
      how,
      path,
      ...(now === undefined ? {} : { now: toRow(now) }),
      ...(before === undefined ? {} : { before: toRow(before) }),
      hasContent,
    };
    if (hasContent) yield* contentOf(folder, path, now.size);
  }
}

async function isThere(folder: string, path: RawPath): Promise<boolean> {
  return (await lstat(toSystem(`${toRaw(folder)}/${path}`)).catch(() => undefined))?.isFile() === true;
}

/** What is not as its entry says is found out by whoever reads the bundle. */
async function* contentOf(folder: string, path: RawPath, size: number): AsyncGenerator<BundleLine> {
  const file = await open(toSystem(`${toRaw(folder)}/${path}`), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Math.max(size, 1)));
    for (let at = 0; at < size;) {
      const { bytesRead } = await file.read(piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield { kind: "data", base64: piece.toString("base64", 0, bytesRead) };
    }
  } finally {
    await file.close();
  }
}

async function* sealed(lines: AsyncIterable<BundleLine>, home: string): AsyncGenerator<string> {
  const digest = createHash("sha256");
  let count = 0;
  for await (const line of lines) {
    const text = `${JSON.stringify(line)}\n`;
    digest.update(text);
    count += 1;
    yield text;
  }
  const sha256 = digest.digest("hex");
  const signature = seal(home, sha256);
  const end: BundleLine = { kind: "end", lines: count, sha256, ...(signature === undefined ? {} : { signature }) };
  yield `${JSON.stringify(end)}\n`;
}
