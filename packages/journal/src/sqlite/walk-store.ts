/** Walks all events of the store: in several threads where there are many, otherwise here. */
import { availableParallelism } from "node:os";
import type { VerifyWatch } from "../journal.ts";
import { NOTHING_WALKED, type WalkedRange } from "../evidence/walk.ts";
import { walkAll } from "../evidence/walk-all.ts";
import { text } from "../record/rows.ts";
import type { Connection } from "./driver.ts";
import { lastPosition } from "./read.ts";
import { rowsOf } from "./stored-rows.ts";

/** For less, starting threads takes longer than walking. */
const MANY_EVENTS = 50_000;
const MAX_WALKERS = 4;

export async function walkStore(
  connection: Connection,
  database: string,
  { stream, onProgress = () => undefined, ...watch }: VerifyWatch & { readonly stream?: string | undefined },
): Promise<readonly WalkedRange[]> {
  const last = lastPosition(connection);
  const { walkers = last < MANY_EVENTS ? 1 : Math.min(MAX_WALKERS, availableParallelism()) } = watch;
  // A read-only store may have to be opened in a special way.
  if (stream === undefined && walkers > 1 && !connection.isReadOnly) {
    const { walkInParallel } = await import("./walk-in-parallel.ts");
    const { signal } = watch;
    return walkInParallel({
      database,
      last,
      walkers,
      signal,
      onProgress: (events) => onProgress({ events, of: last }),
    });
  }
  const structure = stream === undefined ? [checkStructure(connection)] : [];
  const of = stream === undefined ? last : undefined;
  return [...structure, ...(await walkAll(rowsOf(connection), { stream, of, onProgress, signal: watch.signal }))];
}

/** SQLite's own check of its pages, as a range without events. */
export function checkStructure(connection: Connection): WalkedRange {
  const isSound = text(connection.get("PRAGMA quick_check(1)"), "quick_check") === "ok";
  const message = "the database file is damaged: its pages do not fit together";
  return { ...NOTHING_WALKED, damage: isSound ? [] : [{ kind: "file-corrupt", message }] };
}
