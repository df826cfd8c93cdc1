/**
 * Checks a thread before it continues, at a cost that does not grow with it: links and bodies of what it continues
 * from, its newest checkpoints, and the newest lines of the witness. `verify` finds damage further back.
 */
import type { HomePaths } from "../home.ts";
import type { Damage } from "../journal.ts";
import { genesisOf } from "../record/chain.ts";
import { integer, text } from "../record/rows.ts";
import { checkLink, type Head } from "./check-link.ts";
import { checkCheckpoint, readCheckpoints } from "./checkpoints.ts";
import { loadKey } from "./keys.ts";
import type { StoredRows } from "./stored-rows.ts";
import { bodyGone } from "./walk.ts";
import { firstLoss, readClaims } from "./witness.ts";

const MAX_EVENTS = 4096;
const NEWEST_BYTES = 8 * 1024;

export async function proveEnd(
  stored: StoredRows,
  paths: HomePaths,
  { stream, after }: { readonly stream: string; readonly after: number },
): Promise<Damage | undefined> {
  // Claims are read before the store: commits that happen meanwhile are not damage.
  const { claims } = readClaims(paths.witness, NEWEST_BYTES);
  const checkpoints = [...readCheckpoints(paths.checkpoints, stream, NEWEST_BYTES)].flatMap((file) => file.checkpoints);
  try {
    const last = await stored.lastVersion(stream);
    const damage =
      (await walkEnd(stored, { stream, after: Math.max(after, last - MAX_EVENTS), last })) ??
      (await firstLoss(stored, claims, stream));
    if (damage !== undefined) return damage;
    const key = loadKey(paths.keys);
    // An unreadable key puts nothing stored in doubt.
    if (key.kind === "unusable") return undefined;
    for (const checkpoint of checkpoints) {
      const found = await checkCheckpoint(stored, checkpoint, key.verifier);
      if (found !== undefined) return found;
    }
    return undefined;
  } catch (error) {
    return stored.damageOf(error);
  }
}

async function walkEnd(
  stored: StoredRows,
  { stream, after, last }: { readonly stream: string; readonly after: number; readonly last: number },
): Promise<Damage | undefined> {
  const before = after === 0 ? undefined : await stored.of(stream, after);
  let head: Head = { version: after, hash: before === undefined ? genesisOf(stream) : text(before, "hash") };
  while (head.version < last) {
    const rows = await stored.pageOf({ stream, after: head.version, upTo: last });
    for (const row of rows) {
      const [version, position] = [integer(row, "version"), integer(row, "position")];
      const found =
        checkLink(row, head) ?? (row["body"] === null ? bodyGone({ stream, version, position }) : undefined);
      if (found !== undefined) return found;
      head = { version, hash: text(row, "hash") };
    }
    if (rows.length === 0)
      return { kind: "version-gap", message: `${stream} has no event after ${head.version}`, stream };
  }
  return undefined;
}
