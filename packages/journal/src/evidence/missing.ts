/**
 * Whether the evidence outside the database exists. Its loss proves nothing, but without it a record that was cut or
 * rehashed looks whole. A crash may lose the newest line of each kind, so that one is never reported.
 */
import { integer } from "../record/rows.ts";
import type { HomePaths } from "../home.ts";
import type { MissingEvidence } from "../journal.ts";
import type { StoredRows } from "./stored-rows.ts";
import { MAX_REPORTED, type TurnEnds } from "./walk.ts";
import { readClaims } from "./witness.ts";

const NEWEST_BYTES = 8 * 1024;

export async function missingWitness(
  rows: StoredRows,
  paths: HomePaths,
  turnEnds: readonly TurnEnds[],
): Promise<readonly MissingEvidence[]> {
  if (turnEnds.length === 0 && !(await hasSeveralAppends(rows))) return [];
  // Read after the events: a line that another process wrote meanwhile counts.
  if (readClaims(paths.witness, NEWEST_BYTES).claims.length > 0) return [];
  const message = `${paths.witness} has no line of any append, so it cannot be shown that the end of the record is complete`;
  return [{ kind: "witness", message }];
}

/** Events of one append have the same time; later ones a later one. */
async function hasSeveralAppends(rows: StoredRows): Promise<boolean> {
  const [first] = await rows.page({ after: 0 }, 1);
  const last = await rows.at(await rows.lastPosition());
  return first !== undefined && last !== undefined && integer(first, "at") < integer(last, "at");
}

/**
 * `signed`: the newest checkpoint of each stream. A crash may have come before the first one of a stream, but not
 * before the first one of several.
 */
export function missingCheckpoints(
  folder: string,
  turnEnds: readonly TurnEnds[],
  signed: ReadonlyMap<string, number>,
): readonly MissingEvidence[] {
  const hasNone = signed.size === 0 && turnEnds.length > 1;
  return turnEnds
    .flatMap(({ stream, newest, before }): MissingEvidence[] => {
      const head = signed.get(stream);
      if (!hasNone && (head ?? 0) >= before) return [];
      const what = head === undefined ? "no checkpoint" : `no checkpoint after event ${head}`;
      const message = `${folder} has ${what} of ${stream}, whose turns end at event ${newest}; it cannot be proved that they were not rewritten`;
      return [{ kind: "checkpoint", message, stream }];
    })
    .slice(0, MAX_REPORTED);
}
