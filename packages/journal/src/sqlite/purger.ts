/** Carries purges out: bodies go in slices, between which others append, and then the room they took is given back. */
import { setImmediate as breathe } from "node:timers/promises";
import type { Connection } from "./driver.ts";
import type { HomePaths } from "../home.ts";
import { MAKES_ROOM, type WriteKind } from "./writer.ts";
import type { Notice } from "../journal.ts";
import { clearPurge, readPurges } from "./purge-notes.ts";
import { forgetSome, isEnded, isSmall, purgeCopies, settle, type Forgotten, type InTurn } from "./purge.ts";

export interface PurgerOptions {
  readonly paths: HomePaths;
  readonly connection: () => Connection;
  readonly inTurn: InTurn;
  write<T>(work: () => T, kind: WriteKind): Promise<T>;
  /** What is kept of a stream is worth nothing any more. */
  forgotten(stream: string): void;
  readonly notice: (notice: Notice) => void;
}

export interface Purger {
  /** Carries out every purge that is noted, also those that a crash has cut off. */
  finish(): Promise<void>;
  /** Never rejects. */
  settled(): Promise<void>;
  /** Gives back no more room than it is about to. */
  close(): Promise<void>;
}

export function createPurger(options: PurgerOptions): Purger {
  const { paths, connection, inTurn, notice } = options;
  const closing = new AbortController();
  let settling: Promise<void> = Promise.resolve();

  async function forget(purged: Forgotten): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after;
      const slice = (): number | undefined => forgetSome(connection(), purged, from);
      after = await inTurn(() => options.write(slice, MAKES_ROOM));
      await breathe();
    }
    options.forgotten(purged.stream);
    // The room of a large store is given back when nobody waits for it any more.
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
    async finish() {
      for (const purged of readPurges(paths.purging)) {
        if (await inTurn(() => isEnded(connection(), purged))) await forget(purged);
        clearPurge(paths.purging, purged.stream);
      }
    },
    settled: () => settling,
    async close() {
      closing.abort();
      await settling;
    },
  };
}
