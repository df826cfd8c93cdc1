/**
 * The witness: one line for each acknowledged append, outside the database. SQLite cannot see that the end of its WAL
 * is gone; a line here that names an event the store does not hold can. It is written after the commit, so it may lag
 * behind the store and never runs ahead of it.
 *
 * Bound: at `ROTATE_AT_BYTES` the file becomes `witness.log.1` and a new one begins. Renaming keeps lines that a
 * slower process still writes to the old file, and only the holder of the write lock renames.
 */
import { closeSync, fstatSync, renameSync } from "node:fs";
import { failpoint } from "@heddle/protocol/failpoints";
import { appendLine, openForAppend, readLastLines, sizeOf } from "../home.ts";
import type { Damage } from "../journal.ts";
import { text } from "../record/rows.ts";
import type { StoredRows } from "./stored-rows.ts";

const ROTATE_AT_BYTES = 256 * 1024;

export interface Claim {
  readonly position: number;
  readonly count: number;
  readonly stream: string;
  readonly version: number;
  readonly hash: string;
}

export function openWitness(path: string) {
  let fd: number | undefined;
  let writtenBytes = 0;

  function close(): void {
    if (fd !== undefined) closeSync(fd);
    fd = undefined;
  }

  return {
    write(claim: Claim): void {
      failpoint("journal.witness.before-write");
      const line = `${claim.position} ${claim.count} ${encodeURIComponent(claim.stream)} ${claim.version} ${claim.hash}`;
      fd ??= openForAppend(path);
      appendLine(fd, line);
      if (fstatSync(fd).nlink === 0) {
        // Two rotations happened while this process slept: its file was removed, the line belongs in the current one.
        close();
        fd = openForAppend(path);
        appendLine(fd, line);
      }
      writtenBytes += line.length;
      failpoint("journal.witness.after-write");
    },
    /** Only while holding the write lock of the store. */
    rotateWhenLarge(): void {
      if (writtenBytes < ROTATE_AT_BYTES / 8) return;
      writtenBytes = 0;
      if (sizeOf(path) < ROTATE_AT_BYTES) return;
      renameSync(path, `${path}.1`);
      close();
    },
    close,
  };
}

export interface Claims {
  readonly claims: readonly Claim[];
  /** Cut by a crash or a full disk, or not written by Heddle; the others count. */
  readonly tornLines: number;
}

/** The newest claims, from at most `maxBytes` of each file; all when not limited. */
export function readClaims(path: string, maxBytes?: number): Claims {
  const claims: Claim[] = [];
  let tornLines = 0;
  for (const file of [`${path}.1`, path]) {
    for (const line of readLastLines(file, maxBytes)) {
      const claim = parse(line);
      if (claim === undefined) tornLines += 1;
      else claims.push(claim);
    }
  }
  return { claims, tornLines };
}

/** The hash ends the line and has a fixed length, so that half a line is never taken for a whole one. */
const LINE = /^(\d+) (\d+) (\S+) (\d+) ([0-9a-f]{64})$/;

function parse(line: string): Claim | undefined {
  const [, position, count, stream, version, hash] = LINE.exec(line) ?? [];
  const numbers = [position, count, version].map(Number);
  const name = decoded(stream);
  if (name === undefined || hash === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  return { position: Number(position), count: Number(count), stream: name, version: Number(version), hash };
}

function decoded(stream: string | undefined): string | undefined {
  try {
    return stream === undefined ? undefined : decodeURIComponent(stream);
  } catch {
    return undefined;
  }
}

/** The first acknowledged event that is not in the store. Claims are read before the store. */
export async function firstLoss(
  rows: StoredRows,
  claims: readonly Claim[],
  stream?: string,
): Promise<Damage | undefined> {
  const inOrder = claims
    .filter((claim) => stream === undefined || claim.stream === stream)
    .toSorted((a, b) => a.position - b.position);
  for (const claim of inOrder) {
    const row = await rows.at(claim.position);
    if (row === undefined) return lossOf(claim, await rows.lastPosition());
    if (text(row, "hash") === claim.hash) continue;
    const { position, version } = claim;
    return {
      kind: "event-altered",
      message: `event ${version} of ${claim.stream} (position ${position}) is not the one that was acknowledged`,
      stream: claim.stream,
      version,
      position,
      by: "witness",
    };
  }
  return undefined;
}

function lossOf(claim: Claim, last: number): Damage {
  if (claim.position <= last) {
    const { stream, version, position } = claim;
    const message = `event ${version} of ${stream} (position ${position}) was acknowledged and is missing`;
    return { kind: "version-gap", message, stream, version, position, by: "witness" };
  }
  const position = last + 1;
  const named = `position ${claim.position} (event ${claim.version} of ${claim.stream})`;
  const message = `the store ends at position ${last}, but ${named} was acknowledged`;
  // Where the claim reaches back to the end of the store, it names the first event lost.
  const back = claim.position - position;
  if (back >= claim.count) return { kind: "tail-lost", message, position, by: "witness" };
  const version = claim.version - back;
  return {
    kind: "tail-lost",
    message: `${message}; the first one lost is event ${version} of ${claim.stream}`,
    stream: claim.stream,
    version,
    position,
    by: "witness",
  };
}

export function tornMessage(path: string, lines: number): string {
  return `${path} has ${lines} unfinished line(s) from a crash; the others are valid`;
}
