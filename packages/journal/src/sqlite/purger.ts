/**
 * Carries purges out: the thread is ended in one transaction, then its bodies go in slices, between which others append, and
 * the room they took is given back. A file for each in `purging`, made before the first body goes and removed after the last,
 * tells the next process what a crash has cut off.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import type { StoredEvent } from "@heddle/protocol";
import { NAMED_WITHIN_MS, removeBlob } from "../blobs/blob-files.ts";
import { makePrivateFolder, sizeOf, syncFile, type HomePaths } from "../home.ts";
import type { Notice } from "../journal.ts";
import { SQLITE } from "./dialect.ts";
import { answer, type Connection } from "./driver.ts";
import { isEnded, type Forgotten } from "../sql/purge.ts";
import type { LeaseTime } from "../sql/leases.ts";
import { blobsOfAlone } from "../sql/queries/blobs.ts";
import { forgetSome, isSmall, purge, purgeCopies, settle, type InTurn, type Purging } from "./purge.ts";

export interface PurgerOptions {
  readonly paths: HomePaths;
  readonly connection: () => Connection;
  readonly time: () => LeaseTime;
  readonly inTurn: InTurn;
  /** It makes room, so it may use what is reserved for the ends of turns. */
  write<T>(work: () => T): Promise<T>;
  /** The cache of a stream is invalid. */
  forgotten(stream: string): void;
  readonly notice: (notice: Notice) => void;
}

export type Purger = ReturnType<typeof createPurger>;

export function createPurger(options: PurgerOptions) {
  const { paths, connection, inTurn, notice } = options;
  const closing = new AbortController();
  let settling: Promise<void> = Promise.resolve();

  /** First, because what the bodies name is not known any more once they are gone. */
  async function removeBlobs({ stream }: Forgotten): Promise<void> {
    for (const { sha256, at } of await inTurn(() => answer(connection(), blobsOfAlone(stream, SQLITE))))
      // A later one was written by somebody who is about to name it, unless that is long ago.
      await removeBlob(paths.home, { name: sha256, mtimeMs: Math.max(at + 1, Date.now() - NAMED_WITHIN_MS) });
  }

  async function forget(purged: Forgotten): Promise<void> {
    await removeBlobs(purged);
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after;
      const slice = (): number | undefined => forgetSome(connection(), purged, from);
      after = await inTurn(() => options.write(slice));
      await breathe();
    }
    options.forgotten(purged.stream);
    // The room of a large store is given back when nobody waits for it.
    const isSoon = isSmall(paths.database);
    settling = settling.then(() => giveBack(purged));
    if (isSoon) await settling;
  }

  async function giveBack({ stream, before }: Forgotten): Promise<void> {
    const inCopies = await purgeCopies(paths.database, stream, before);
    const { signal } = closing;
    const unsettled = (await settle(connection(), paths.database, { inTurn, signal })) ?? inCopies;
    if (unsettled !== undefined) notice({ kind: "purge-unsettled", message: unsettled });
  }

  return {
    /** In the turn of the caller; bodies go with the next `finish`. */
    async endThread(asked: Omit<Purging, "time">): Promise<StoredEvent> {
      const end = (): StoredEvent => {
        const deleted = purge(connection(), { ...asked, time: options.time() });
        writeNote(paths.purging, { stream: deleted.stream, before: deleted.version });
        return deleted;
      };
      const deleted = await options.write(end);
      options.forgotten(deleted.stream);
      return deleted;
    },
    /** Carries out every noted purge, also after a crash. */
    async finish(): Promise<void> {
      for (const purged of readNotes(paths.purging)) {
        if (await inTurn(() => answer(connection(), isEnded(purged)))) await forget(purged);
        removeNote(paths.purging, purged.stream);
      }
    },
    settled: (): Promise<void> => settling,
    async close(): Promise<void> {
      closing.abort();
      await settling;
    },
  };
}

function writeNote(folder: string, { stream, before }: Forgotten): void {
  makePrivateFolder(folder);
  writeFileSync(fileOf(folder, stream), `${before}\n`, { mode: 0o600 });
  syncFile(fileOf(folder, stream));
}

function readNotes(folder: string): readonly Forgotten[] {
  if (sizeOf(folder) < 0) return [];
  return readdirSync(folder).map((name) => {
    // Another process may have finished it; a note that a crash cut is empty.
    const text = sizeOf(join(folder, name)) > 0 ? readFileSync(join(folder, name), "utf8") : "0";
    return { stream: decodeURIComponent(name), before: Number.parseInt(text, 10) || 0 };
  });
}

function removeNote(folder: string, stream: string): void {
  rmSync(fileOf(folder, stream), { force: true });
}

function fileOf(folder: string, stream: string): string {
  return join(folder, encodeURIComponent(stream));
}
