/**
 * Walks the whole record: every link and body of every chain, every signed checkpoint, every line of the witness, and
 * SQLite's own structures. Finds what is not as it was written; changes nothing.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { isHeddleError } from "@heddle/protocol";
import { availableParallelism } from "node:os";
import { checkCheckpoint, readCheckpoints } from "./checkpoints.ts";
import type { Connection } from "./driver.ts";
import type { HomePaths } from "./home.ts";
import type { Damage, MissingEvidence, Notice, VerifyReport, VerifyWatch } from "./journal.ts";
import { loadVerifier, type Verifier } from "./keys.ts";
import { lastPosition } from "./read.ts";
import { asDamage } from "./store-errors.ts";
import { missingCheckpoints, missingWitness } from "./verify-evidence.ts";
import { checkStructure, CHUNK, joinRanges, MAX_REPORTED, walkRange, type Walk } from "./verify-walk.ts";
import { firstLoss, readClaims, tornMessage } from "./witness.ts";

/** For less, starting threads takes longer than walking. */
const MANY_EVENTS = 50_000;
const MAX_WALKERS = 4;

export interface VerifyOptions extends VerifyWatch {
  readonly stream?: string | undefined;
}

export async function verifyStore(
  connection: Connection,
  paths: HomePaths,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const { stream } = options;
  const damage: Damage[] = [];
  const notices: Notice[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };

  // What was promised is read before what is there: commits that happen meanwhile are no damage.
  const { claims, tornLines } = readClaims(paths.witness);
  if (tornLines > 0) notices.push({ kind: "witness-torn", message: tornMessage(paths.witness, tornLines) });

  let walked: Walk = { events: 0, streams: 0, damage: [], purged: 0, violations: [], turnEnds: [] };
  let checkpoints = 0;
  const signed = new Map<string, number>();
  const missing: MissingEvidence[] = [];
  try {
    walked = await walk(connection, paths.database, options);
    for (const found of walked.damage) report(found);
    report(firstLoss(connection, claims, stream));
    const key = loadKey(paths.keys, notices);
    for (const file of readCheckpoints(paths.checkpoints, stream)) {
      if (file.tornLines > 0) {
        notices.push({ kind: "checkpoint-torn", message: tornMessage(file.path, file.tornLines) });
      }
      if (key.kind === "unusable") continue;
      for (const checkpoint of file.checkpoints) {
        report(checkCheckpoint(connection, checkpoint, key.verifier));
        signed.set(checkpoint.stream, Math.max(signed.get(checkpoint.stream) ?? 0, checkpoint.version));
        checkpoints += 1;
        if (checkpoints % CHUNK === 0) await breathe();
      }
    }
    missing.push(...missingWitness(connection, paths, walked.turnEnds));
    if (key.kind === "unusable") missing.push({ kind: "key", message: key.message });
    else missing.push(...missingCheckpoints(paths.checkpoints, walked.turnEnds, signed));
  } catch (error) {
    report(asDamage(error));
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

/** In several threads where there is much to walk; otherwise here, with pauses in which others run. */
async function walk(connection: Connection, database: string, options: VerifyOptions): Promise<Walk> {
  const { stream, onProgress = () => undefined } = options;
  const last = lastPosition(connection);
  const { walkers = last < MANY_EVENTS ? 1 : Math.min(MAX_WALKERS, availableParallelism()) } = options;
  // A store that this process may only read may have to be read in a way of its own.
  if (stream === undefined && walkers > 1 && !connection.isReadOnly) {
    const { walkInParallel } = await import("./verify-parallel.ts");
    const tell = (events: number): void => onProgress({ events, of: last });
    return joinRanges(connection, await walkInParallel({ database, last, walkers, onProgress: tell }));
  }
  const structure = stream === undefined ? [checkStructure(connection)] : [];
  const steps = walkRange(connection, { after: 0, stream });
  for (let events = 0; ;) {
    const { done, value } = steps.next();
    if (done === true) return joinRanges(connection, [...structure, value]);
    events += value;
    onProgress({ events, of: stream === undefined ? last : undefined });
    await breathe();
  }
}
