/**
 * Whole outputs that did not fit into the record: files in `blobs` of the home, each named by the SHA-256 of its content, so
 * that the record, which holds the name, proves the content. Written by whoever runs the command; names that end in `.part`
 * are not complete.
 */
import { createHash, randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { link, lstat, mkdir, open, opendir, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { errorCodeOf, HeddleError } from "@heddle/protocol";
import { BLOB_NAME, blobPath, blobsFolder } from "./blob-paths.ts";

const PART = ".part";
const CHUNK_BYTES = 1024 * 1024;
/** Between the end of a command and the event that names its output lie moments; a machine may sleep in between. */
export const NAMED_WITHIN_MS = 60 * 60 * 1000;

export interface BlobFile {
  readonly name: string;
  readonly bytes: number;
  /** When it was written last, also where it was there before. */
  readonly mtimeMs: number;
  /** Not complete: it is being written, or who wrote it died. */
  readonly isPart: boolean;
}

export async function* blobFiles(home: string): AsyncGenerator<BlobFile, void, void> {
  const folder = await opendir(blobsFolder(home)).catch(unlessMissing);
  if (folder === undefined) return;
  for await (const { name } of folder) {
    const isPart = name.endsWith(PART);
    if (!isPart && !BLOB_NAME.test(name)) continue;
    const found = await lstat(join(blobsFolder(home), name)).catch(unlessMissing);
    if (found?.isFile() === true) yield { name, bytes: found.size, mtimeMs: found.mtimeMs, isPart };
  }
}

export type BlobState = "whole" | "missing" | "altered";

/** Reads all of it. */
export async function checkBlob(home: string, name: string, signal?: AbortSignal): Promise<BlobState> {
  const path = blobPath(home, name);
  const file = path === undefined ? undefined : await openBlob(path);
  if (file === undefined) return "missing";
  await using _close = file;
  const hash = createHash("sha256");
  for await (const chunk of chunksOf(file)) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
  return hash.digest("hex") === name ? "whole" : "altered";
}

/** Its content, once it is known to be what the name says. */
export async function* readBlob(home: string, name: string): AsyncGenerator<Buffer, void, void> {
  const state = await checkBlob(home, name);
  if (state === "altered")
    throw new HeddleError(
      "store.damaged",
      `${blobPath(home, name)} was changed: its content is not the one of its name`,
    );
  const path = blobPath(home, name);
  const file = path === undefined || state === "missing" ? undefined : await openBlob(path);
  if (file === undefined) throw new HeddleError("evidence.not-found", `the home has no output with the hash ${name}`);
  await using _close = file;
  yield* chunksOf(file);
}

export interface Brought {
  readonly pieces: AsyncIterable<Buffer> | Iterable<Buffer>;
  /** Not after the event that names it: who purges that takes a later file for one that another is about to name. */
  readonly mtimeMs: number;
}

/** Keeps a content that somebody else has named; false: it is not what its name says, and nothing was kept. */
export async function keepBlob(home: string, name: string, { pieces, mtimeMs }: Brought): Promise<boolean> {
  const path = blobPath(home, name);
  if (path === undefined) return false;
  // Brought again, it is as old as it was.
  if ((await checkBlob(home, name)) === "whole") return true;
  await mkdir(blobsFolder(home), { recursive: true, mode: 0o700 });
  const part = join(blobsFolder(home), `${randomUUID()}${PART}`);
  try {
    const hash = createHash("sha256");
    const file = await open(part, "wx", 0o600);
    try {
      for await (const piece of pieces) {
        hash.update(piece);
        await file.writeFile(piece);
      }
      await file.utimes(mtimeMs / 1000, mtimeMs / 1000);
      await file.sync();
    } finally {
      await file.close();
    }
    if (hash.digest("hex") !== name) return false;
    await rename(part, path);
    return true;
  } finally {
    await rm(part, { force: true });
  }
}

/** false: it is newer than that, so that somebody is about to name it, or it is gone. */
export async function removeBlob(
  home: string,
  { name, mtimeMs }: Pick<BlobFile, "name" | "mtimeMs">,
): Promise<boolean> {
  const path = join(blobsFolder(home), name);
  const aside = join(blobsFolder(home), `${randomUUID()}${PART}`);
  // Taken away first and looked at then: who writes the same content meanwhile does it under a free name.
  const isTaken = await rename(path, aside).then(() => true, unlessMissing);
  if (isTaken !== true) return false;
  const isOld = (await lstat(aside)).mtimeMs <= mtimeMs;
  if (!isOld)
    await link(aside, path).catch((error: unknown) => {
      if (errorCodeOf(error) !== "EEXIST") throw error;
    });
  await rm(aside, { force: true });
  return isOld;
}

async function openBlob(path: string): Promise<FileHandle | undefined> {
  const found: Stats | undefined = await lstat(path).catch(unlessMissing);
  if (found?.isFile() !== true) return undefined;
  return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(unlessMissing);
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer, void, void> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function unlessMissing(error: unknown): undefined {
  if (errorCodeOf(error) !== "ENOENT") throw error;
}
