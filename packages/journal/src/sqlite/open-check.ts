/**
 * Checks a store whenever it is opened, at a fixed cost: the newest witness lines (8 KiB of each file) against their
 * events; hashes and links of the newest 16 events, with bodies up to 64 KiB. `verify` finds damage further back.
 */
import { existsSync } from "node:fs";
import { hasCheckpoints } from "../evidence/checkpoints.ts";
import type { Connection } from "./driver.ts";
import { sizeOf, type HomePaths } from "../home.ts";
import type { Damage, Notice } from "../journal.ts";
import { genesisOf } from "../record/chain.ts";
import { integer, text } from "../record/rows.ts";
import { asDamage, faultOf } from "./store-errors.ts";
import { rowsOf } from "./stored-rows.ts";
import { checkLink } from "../evidence/check-link.ts";
import { firstLoss, readClaims, tornMessage, type Claim } from "../evidence/witness.ts";

const WITNESS_BYTES = 8 * 1024;
const NEWEST_EVENTS = 16;
const BODY_BYTES = 64 * 1024;

export interface OpenCheck {
  readonly damage: Damage | undefined;
  readonly notices: readonly Notice[];
}

export async function checkOnOpen(connection: Connection, paths: HomePaths): Promise<OpenCheck> {
  const { claims, notices } = newestClaims(paths.witness);
  try {
    const stored = rowsOf(connection);
    const isLost = (await firstLoss(stored, claims)) !== undefined;
    // Only the whole witness names the first event lost.
    const damage = isLost ? await firstLoss(stored, readClaims(paths.witness).claims) : checkNewest(connection);
    return { damage, notices };
  } catch (error) {
    return { damage: asDamage(error), notices };
  }
}

function newestClaims(path: string): { claims: readonly Claim[]; notices: readonly Notice[] } {
  try {
    const { claims, tornLines } = readClaims(path, WITNESS_BYTES);
    if (tornLines === 0) return { claims, notices: [] };
    return { claims, notices: [{ kind: "witness-torn", message: tornMessage(path, tornLines) }] };
  } catch (error) {
    // Another owner's store, opened to read: its owner checks the witness.
    if (faultOf(error) !== "read-only") throw error;
    return { claims: [], notices: [{ kind: "witness-unreadable", message: `${path} cannot be read by this user` }] };
  }
}

function checkNewest(connection: Connection): Damage | undefined {
  const rows = connection.all(
    `SELECT position, stream, version, id, at, author, type, v, body_hash, prev_hash, hash,
            CASE WHEN octet_length(body) <= ${BODY_BYTES} THEN body END AS body
     FROM events ORDER BY position DESC LIMIT ${NEWEST_EVENTS}`,
  );
  for (const row of rows.toReversed()) {
    const [stream, version] = [text(row, "stream"), integer(row, "version")];
    const before = connection.get("SELECT hash FROM events WHERE stream = ? AND version = ?", stream, version - 1);
    const start = { version: 0, hash: genesisOf(stream) };
    const damage = checkLink(row, before === undefined ? start : { version: version - 1, hash: text(before, "hash") });
    if (damage !== undefined) return damage;
  }
  return undefined;
}

/**
 * For a database that is missing or has no tables: proof that there was one. Then it is not created again. The witness
 * is read before the database is looked at again, because another process may be creating it.
 */
export function proofOfLoss(paths: HomePaths): Damage | undefined {
  const message = (proof: string): string => `${paths.database} is missing or empty, but ${proof} lists events in it`;
  const [claim] = readClaims(paths.witness).claims.toSorted((a, b) => a.position - b.position);
  if (claim !== undefined) return { kind: "tail-lost", message: message(paths.witness), position: 1 };
  if (hasCheckpoints(paths.checkpoints)) return { kind: "tail-lost", message: message(paths.checkpoints), position: 1 };
  const wal = `${paths.database}-wal`;
  return sizeOf(wal) > 0 && isEmpty(paths) ? { kind: "file-corrupt", message: message(wal) } : undefined;
}

export function isEmpty(paths: HomePaths): boolean {
  return !existsSync(paths.database) || sizeOf(paths.database) === 0;
}
