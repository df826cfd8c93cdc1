/**
 * Walks the whole record: every link and body of every chain, every checkpoint, every line of the witness, and the
 * store's own structures. Reports what was altered; changes nothing.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { isHeddleError } from "@heddle/protocol";
import { checkCheckpoint, readCheckpoints } from "./checkpoints.ts";
import type { HomePaths } from "../home.ts";
import type { Damage, MissingEvidence, Notice, VerifyReport } from "../journal.ts";
import { loadVerifier, type Verifier } from "./keys.ts";
import { missingCheckpoints, missingWitness } from "./missing.ts";
import type { StoredRows } from "./stored-rows.ts";
import { CHUNK, joinRanges, MAX_REPORTED, type Walk, type WalkedRange } from "./walk.ts";
import { firstLoss, readClaims, tornMessage } from "./witness.ts";

export async function verifyStore(
  stored: StoredRows,
  paths: HomePaths,
  { stream, walk }: { readonly stream?: string | undefined; readonly walk: () => Promise<readonly WalkedRange[]> },
): Promise<VerifyReport> {
  const damage: Damage[] = [];
  const notices: Notice[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };

  // Claims are read before the store: commits that happen meanwhile are not damage.
  const { claims, tornLines } = readClaims(paths.witness);
  if (tornLines > 0) notices.push({ kind: "witness-torn", message: tornMessage(paths.witness, tornLines) });

  let walked: Walk = { events: 0, streams: 0, damage: [], purged: 0, violations: [], turnEnds: [] };
  let checkpoints = 0;
  const signed = new Map<string, number>();
  const missing: MissingEvidence[] = [];
  try {
    walked = await joinRanges(stored, await walk());
    for (const found of walked.damage) report(found);
    report(await firstLoss(stored, claims, stream));
    const key = loadKey(paths.keys, notices);
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
      }
    }
    missing.push(...(await missingWitness(stored, paths, walked.turnEnds)));
    if (key.kind === "unusable") missing.push({ kind: "key", message: key.message });
    else missing.push(...missingCheckpoints(paths.checkpoints, walked.turnEnds, signed));
  } catch (error) {
    report(stored.damageOf(error));
  }
  const { events, streams, purged, violations } = walked;
  if (purged > 0) {
    notices.push({ kind: "bodies-purged", message: `the content of ${purged} event(s) of deleted threads was purged` });
  }
  return { events, streams, checkpoints, damage, notices, missing, violations };
}

type Key =
  | { readonly kind: "usable"; readonly verifier: Verifier | undefined }
  | { readonly kind: "unusable"; readonly message: string };

function loadKey(folder: string, notices: Notice[]): Key {
  try {
    return { kind: "usable", verifier: loadVerifier(folder) };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    const message = `checkpoints cannot be verified: ${error.message}`;
    notices.push({ kind: "key-unusable", message });
    return { kind: "unusable", message };
  }
}
