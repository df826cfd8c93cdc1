/**
 * Checks a store whenever it is opened, at a fixed cost: the newest witness lines (8 KiB of each file) against their
 * events; hashes and links of the newest 16 events, with bodies up to 64 KiB. `verify` finds damage further back.
 */
import { checkLink } from "../evidence/check-link.ts";
import type { StoredRows } from "../evidence/stored-rows.ts";
import { firstLoss, readClaims, tornMessage, type Claim } from "../evidence/witness.ts";
import type { Damage, Notice } from "../journal.ts";
import { genesisOf } from "../record/chain.ts";
import { integer, text } from "../record/rows.ts";
import { all, get, type Ask, type Asking } from "./ask.ts";

const WITNESS_BYTES = 8 * 1024;
const NEWEST_EVENTS = 16;
const BODY_BYTES = 64 * 1024;

export interface OpenCheck {
  readonly damage: Damage | undefined;
  readonly notices: readonly Notice[];
}

export interface CheckedStore {
  readonly ask: Ask;
  readonly rows: StoredRows;
  readonly witness: string;
  /** The file is another owner's, who checks it. */
  readonly isUnreadable: (error: unknown) => boolean;
}

export async function checkOnOpen({ ask, rows, witness, isUnreadable }: CheckedStore): Promise<OpenCheck> {
  const { claims, notices } = newestClaims(witness, isUnreadable);
  try {
    const isLost = (await firstLoss(rows, claims)) !== undefined;
    // Only the whole witness names the first event lost.
    const damage = isLost ? await firstLoss(rows, readClaims(witness).claims) : await ask(checkNewest);
    return { damage, notices };
  } catch (error) {
    return { damage: rows.damageOf(error), notices };
  }
}

function newestClaims(
  path: string,
  isUnreadable: CheckedStore["isUnreadable"],
): { claims: readonly Claim[]; notices: readonly Notice[] } {
  try {
    const { claims, tornLines } = readClaims(path, WITNESS_BYTES);
    if (tornLines === 0) return { claims, notices: [] };
    return { claims, notices: [{ kind: "witness-torn", message: tornMessage(path, tornLines) }] };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { claims: [], notices: [{ kind: "witness-unreadable", message: `${path} cannot be read by this user` }] };
  }
}

const NEWEST = `SELECT position, stream, version, id, at, author, type, v, body_hash, prev_hash, hash,
    CASE WHEN octet_length(body) <= ${BODY_BYTES} THEN body END AS body
  FROM events ORDER BY position DESC LIMIT ${NEWEST_EVENTS}`;

function* checkNewest(): Asking<Damage | undefined> {
  const rows = yield* all(NEWEST);
  for (const row of rows.toReversed()) {
    const [stream, version] = [text(row, "stream"), integer(row, "version")];
    const before = yield* get("SELECT hash FROM events WHERE stream = ? AND version = ?", stream, version - 1);
    const start = { version: 0, hash: genesisOf(stream) };
    const damage = checkLink(row, before === undefined ? start : { version: version - 1, hash: text(before, "hash") });
    if (damage !== undefined) return damage;
  }
  return undefined;
}
