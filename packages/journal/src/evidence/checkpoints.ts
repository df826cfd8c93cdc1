/**
 * Signed checkpoints of a stream, in `checkpoints/<stream>.jsonl` outside the database: at its first event, at the end
 * of each turn and of the thread, and every 256 events. A chain alone does not show that its end was cut or that all of
 * it was rehashed; a signature over an earlier head does. Written after the commit: one may be missing, never too many.
 */
import { closeSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { canonical, type EventType, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { sha256 } from "../record/chain.ts";
import { appendLine, makePrivateFolder, openForAppend, readLastLines, sizeOf } from "../home.ts";
import type { Damage } from "../journal.ts";
import type { Signer, Verifier } from "./keys.ts";
import { text } from "../record/rows.ts";
import type { StoredRows } from "./stored-rows.ts";

const EVERY_EVENTS = 256;
const ENDINGS: ReadonlySet<EventType> = new Set(["turn.completed", "thread.deleted"]);

interface Head {
  readonly stream: string;
  readonly version: number;
  readonly hash: string;
}

export interface Checkpoint extends Head {
  readonly at: number;
  readonly keyId: string;
  readonly signature: string;
}

/** At most one per append: the last event covers the others. */
export function checkpointDue(events: readonly StoredEvent[]): StoredEvent | undefined {
  const [first, last] = [events.at(0), events.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const crosses = Math.floor(last.version / EVERY_EVENTS) > Math.floor((first.version - 1) / EVERY_EVENTS);
  const isDue = first.version === 1 || crosses || events.some(({ body }) => ENDINGS.has(body.type));
  return isDue ? last : undefined;
}

/** Written, and durable when the caller has synced the returned paths. */
export function writeCheckpoint(folder: string, checkpoint: Checkpoint): readonly string[] {
  failpoint("journal.checkpoint.before-write");
  makePrivateFolder(folder);
  const path = fileOf(folder, checkpoint.stream);
  const isNew = sizeOf(path) < 0;
  const fd = openForAppend(path);
  try {
    appendLine(fd, canonical({ ...checkpoint }));
  } finally {
    closeSync(fd);
  }
  failpoint("journal.checkpoint.after-write");
  return isNew ? [path, folder] : [path];
}

export function signHead({ stream, version, hash, at }: Head & Pick<Checkpoint, "at">, signer: Signer): Checkpoint {
  const { keyId } = signer;
  const signature = signer.sign(signedText({ stream, version, hash, at, keyId }));
  return { stream, version, hash, at, keyId, signature };
}

function signedText(head: Omit<Checkpoint, "signature">): string {
  return canonical({ checkpoint: 1, ...head });
}

const MAX_NAME = 100;

/** Ids of Heddle fit a file name; other stream names are hashed. The length is no part of the pattern, which takes long to compile then. */
function fileOf(folder: string, stream: string): string {
  const fits = stream.length <= MAX_NAME && /^[A-Za-z0-9_-]+$/.test(stream);
  return join(folder, `${fits ? stream : `sha256.${sha256(stream)}`}.jsonl`);
}

export interface CheckpointFile {
  readonly path: string;
  readonly checkpoints: readonly Checkpoint[];
  readonly tornLines: number;
}

/** The newest ones, from at most `maxBytes` of each file; all when not limited. */
export function* readCheckpoints(folder: string, stream?: string, maxBytes?: number): Iterable<CheckpointFile> {
  for (const path of stream === undefined ? filesIn(folder) : [fileOf(folder, stream)]) {
    const checkpoints: Checkpoint[] = [];
    let tornLines = 0;
    for (const line of readLastLines(path, maxBytes)) {
      const checkpoint = parse(line);
      if (checkpoint === undefined) tornLines += 1;
      else checkpoints.push(checkpoint);
    }
    yield { path, checkpoints, tornLines };
  }
}

/** Of one page of them. */
const SHOWN_BYTES = 256 * 1024;

/** The newest ones of a stream, oldest first; whether they are genuine is for a verification to say. */
export function checkpointsOf(folder: string, stream: string): readonly Checkpoint[] {
  return [...readCheckpoints(folder, stream, SHOWN_BYTES)].flatMap(({ checkpoints }) => checkpoints);
}

/** The files may belong to a lost store, so the folder itself is evidence. */
export function hasCheckpoints(folder: string): boolean {
  return filesIn(folder).some((path) => sizeOf(path) > 0);
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return names.toSorted().map((name) => join(folder, name));
}

function parse(line: string): Checkpoint | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  return toCheckpoint(value);
}

export function toCheckpoint(value: unknown): Checkpoint | undefined {
  if (!isCheckpoint(value)) return undefined;
  const { stream, version, hash, at, keyId, signature } = value;
  return { stream, version, hash, at, keyId, signature };
}

export function isSignedBy(checkpoint: Checkpoint, verifier: Verifier): boolean {
  const { stream, version, hash, at, keyId, signature } = checkpoint;
  return verifier.keyId === keyId && verifier.verify(signedText({ stream, version, hash, at, keyId }), signature);
}

function isCheckpoint(value: unknown): value is Checkpoint {
  if (typeof value !== "object" || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return (
    ["stream", "hash", "keyId", "signature"].every((name) => typeof fields.get(name) === "string") &&
    ["version", "at"].every((name) => typeof fields.get(name) === "number")
  );
}

/** Checkpoints are read before the store. */
export async function checkCheckpoint(
  rows: StoredRows,
  checkpoint: Checkpoint,
  verifier: Verifier | undefined,
): Promise<Damage | undefined> {
  const { stream, version, hash } = checkpoint;
  const where = { stream, version, by: "checkpoint" } as const;
  if (verifier === undefined || !isSignedBy(checkpoint, verifier)) {
    const message = `the checkpoint at event ${version} of ${stream} is not signed by this home's key`;
    return { kind: "checkpoint-forged", message, ...where };
  }
  const row = await rows.of(stream, version);
  if (row === undefined) {
    const message = `event ${version} of ${stream} was signed by a checkpoint and is missing`;
    return { kind: "tail-lost", message, ...where };
  }
  if (text(row, "hash") === hash) return undefined;
  const message = `event ${version} of ${stream} is not the one its checkpoint signed`;
  return { kind: "checkpoint-mismatch", message, ...where };
}
