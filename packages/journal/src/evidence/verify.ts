/**
 * Walks the whole record: every link and body of every chain, every checkpoint, every line of the witness, and the
 * store's own structures. Reports what was altered; changes nothing.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { checkCheckpoint, hasCheckpoints, readCheckpoints } from "./checkpoints.ts";
import type { HomePaths } from "../home.ts";
import type { Damage, MissingEvidence, Notice, VerifyReport } from "../journal.ts";
import { loadKey } from "./keys.ts";
import type { StoredRows } from "./stored-rows.ts";
import { integer } from "../record/rows.ts";
import { CHUNK, joinRanges, MAX_REPORTED, type TurnEnds, type Walk, type WalkedRange } from "./walk.ts";
import { firstLoss, readClaims, tornMessage } from "./witness.ts";

const NEWEST_BYTES = 8 * 1024;

export async function verifyStore(
  stored: StoredRows,
  paths: HomePaths,
  {
    stream,
    walk,
    signal,
  }: {
    readonly stream?: string | undefined;
    readonly walk: () => Promise<readonly WalkedRange[]>;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<VerifyReport> {
  const damage: Damage[] = [];
  const notices: Notice[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };

  // Claims are read before the store: commits that happen meanwhile are not damage.
  const { claims, tornLines } = readClaims(paths.witness);
  const claimed = stream === undefined ? claims.length : claims.filter((claim) => claim.stream === stream).length;
  if (tornLines > 0) notices.push({ kind: "witness-torn", message: tornMessage(paths.witness, tornLines) });

  let walked: Walk = { events: 0, streams: 0, damage: [], purged: 0, violations: [], turnEnds: [] };
  let checkpoints = 0;
  const signed = new Map<string, number>();
  const missing: MissingEvidence[] = [];
  try {
    walked = await joinRanges(stored, await walk());
    for (const found of walked.damage) report(found);
    report(await firstLoss(stored, claims, stream));
    const key = loadKey(paths.keys);
    if (key.kind === "unusable") notices.push({ kind: "key-unusable", message: key.message });
    for (const file of readCheckpoints(paths.checkpoints, stream)) {
      if (file.tornLines > 0) {
        notices.push({ kind: "checkpoint-torn", message: tornMessage(file.path, file.tornLines) });
      }
      if (key.kind === "unusable") continue;
      for (const checkpoint of file.checkpoints) {
        report(await checkCheckpoint(stored, checkpoint, key.verifier));
        signed.set(checkpoint.stream, Math.max(signed.get(checkpoint.stream) ?? 0, checkpoint.version));
        checkpoints += 1;
        if (checkpoints % CHUNK === 0) await breathe();
        signal?.throwIfAborted();
      }
    }
    for await (const { checkpoint, verifier } of stored.shared?.(stream) ?? []) {
      // Those of this home's key were looked at, where they cannot be changed with the store.
      if (key.kind === "usable" && checkpoint.keyId === key.verifier?.keyId) continue;
      report(await checkCheckpoint(stored, checkpoint, verifier));
      signed.set(checkpoint.stream, Math.max(signed.get(checkpoint.stream) ?? 0, checkpoint.version));
      checkpoints += 1;
      signal?.throwIfAborted();
    }
    missing.push(...(await missingWitness(stored, paths, walked.turnEnds)));
    if (key.kind === "unusable") missing.push({ kind: "key", message: key.message });
    else missing.push(...missingCheckpoints(paths.checkpoints, walked.turnEnds, signed));
  } catch (error) {
    // Whoever ended it has learnt nothing of the record.
    signal?.throwIfAborted();
    report(stored.damageOf(error));
  }
  const { events, streams, purged, violations } = walked;
  if (purged > 0) {
    notices.push({ kind: "bodies-purged", message: `the content of ${purged} event(s) of deleted threads was purged` });
  }
  return { events, streams, checkpoints, claims: claimed, damage, notices, missing, violations };
}

/**
 * Whether the evidence outside the database exists. Its loss proves nothing, but without it a record that was cut or
 * rehashed looks whole. A crash may lose the newest line of each kind, so that one is never reported.
 */
async function missingWitness(
  rows: StoredRows,
  paths: HomePaths,
  turnEnds: readonly TurnEnds[],
): Promise<readonly MissingEvidence[]> {
  if (turnEnds.length === 0 && !(await hasSeveralAppends(rows))) return [];
  // A machine that has appended nothing was told nothing.
  if (rows.shared !== undefined && !hasCheckpoints(paths.checkpoints)) return [];
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
function missingCheckpoints(
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
