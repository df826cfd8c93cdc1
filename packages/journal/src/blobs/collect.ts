/**
 * Removes whole outputs by rule: those that nothing on record names, then those that are older than the owner keeps them, then
 * the oldest until the rest fits. What the record names is removed only after the record says so, in every stream that names it.
 */
import type { Author } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "../journal.ts";
import type { BlobUse } from "../queries/blobs.ts";
import { blobFiles, NAMED_WITHIN_MS, removeBlob, type BlobFile } from "./blob-files.ts";

/** What a few hundred long builds print. */
const DEFAULT_MAX_BYTES = 2 * 1024 ** 3;

export interface CollectRule {
  /** Of all of them together; absent: 2 GiB. */
  readonly maxBytes?: number | undefined;
  /** Absent: no age is too old. */
  readonly maxAgeMs?: number | undefined;
}

export interface CollectedBlob {
  readonly sha256: string;
  readonly bytes: number;
  /** `unnamed`: nothing on record names it. `unfinished`: who wrote it is gone. */
  readonly why: "unnamed" | "unfinished" | "age" | "size";
  /** Streams that name it. */
  readonly streams: readonly string[];
}

export interface CollectOptions {
  readonly home: string;
  readonly rule: CollectRule;
  readonly by: Author;
  readonly nowMs: number;
  /** Says what would be removed. */
  readonly isDryRun?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A server that prints nothing for longer is taken for dead; only its whole output is lost then, with a mark. */
const WRITTEN_WITHIN_MS = 24 * 60 * 60 * 1000;
/** Names that the store is asked about at a time, and that one event holds. */
const BATCH = 200;

type Journaled = Pick<Journal, "blobs" | "append">;

interface Found extends BlobFile {
  readonly uses: readonly BlobUse[];
}

interface Chosen {
  readonly file: Found;
  readonly why: CollectedBlob["why"];
}

export async function collectBlobs(journal: Journaled, options: CollectOptions): Promise<readonly CollectedBlob[]> {
  const chosen = choose(await lookAtAll(journal, options.home), options);
  if (options.isDryRun === true) return chosen.map(toCollected);
  const done: CollectedBlob[] = [];
  // What needs no record first: on a full disk it makes the room that the record needs.
  for (const one of chosen.filter(({ file }) => file.uses.length === 0)) done.push(...(await remove(one, options)));
  const named = chosen.filter(({ file }) => file.uses.length > 0);
  for (let from = 0; from < named.length; from += BATCH) {
    options.signal?.throwIfAborted();
    const batch = named.slice(from, from + BATCH);
    await sayIn(journal, batch, options.by);
    failpoint("blob.before-remove");
    for (const one of batch) done.push(...(await remove(one, options)));
  }
  return done;
}

async function lookAtAll(journal: Journaled, home: string): Promise<readonly Found[]> {
  const files: BlobFile[] = [];
  for await (const file of blobFiles(home)) files.push(file);
  const found: Found[] = [];
  for (let from = 0; from < files.length; from += BATCH) {
    const batch = files.slice(from, from + BATCH);
    const uses = Map.groupBy(await journal.blobs.uses(batch.map(({ name }) => name)), ({ sha256 }) => sha256);
    found.push(...batch.map((file) => ({ ...file, uses: uses.get(file.name) ?? [] })));
  }
  // Two of the same time are always taken in the same order.
  return found.toSorted((one, other) => one.mtimeMs - other.mtimeMs || (one.name < other.name ? -1 : 1));
}

function choose(oldestFirst: readonly Found[], { rule, nowMs }: CollectOptions): readonly Chosen[] {
  const { maxBytes = DEFAULT_MAX_BYTES, maxAgeMs } = rule;
  const chosen: Chosen[] = [];
  const rest: Found[] = [];
  for (const file of oldestFirst) {
    const ageMs = nowMs - file.mtimeMs;
    const isNamed = file.uses.length > 0;
    if (file.isPart) {
      if (ageMs > WRITTEN_WITHIN_MS) chosen.push({ file, why: "unfinished" });
    } else if (!isNamed && ageMs > NAMED_WITHIN_MS) chosen.push({ file, why: "unnamed" });
    else if (isNamed && maxAgeMs !== undefined && ageMs > maxAgeMs) chosen.push({ file, why: "age" });
    else rest.push(file);
  }
  let bytes = rest.reduce((sum, file) => sum + file.bytes, 0);
  for (const file of rest) {
    if (bytes <= maxBytes) break;
    // Nobody has named it yet, and somebody is about to.
    if (file.uses.length === 0) continue;
    chosen.push({ file, why: "size" });
    bytes -= file.bytes;
  }
  return chosen;
}

async function sayIn(journal: Journaled, batch: readonly Chosen[], by: Author): Promise<void> {
  const named = batch.flatMap(({ file, why }) =>
    why === "age" || why === "size"
      ? file.uses.map(({ stream }) => ({ stream, blob: { sha256: file.name, bytes: file.bytes, why } }))
      : [],
  );
  for (const [stream, all] of Map.groupBy(named, (one) => one.stream)) {
    const blobs = all.map(({ blob }) => blob);
    await journal.append({ stream, author: by, events: [{ type: "evidence.collected", v: 1, blobs }] });
  }
}

async function remove(one: Chosen, { home, signal }: CollectOptions): Promise<readonly CollectedBlob[]> {
  signal?.throwIfAborted();
  return (await removeBlob(home, one.file)) ? [toCollected(one)] : [];
}

function toCollected({ file, why }: Chosen): CollectedBlob {
  const { name, bytes, uses } = file;
  return { sha256: name, bytes, why, streams: uses.map(({ stream }) => stream) };
}
