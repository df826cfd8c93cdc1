/**
 * Walks the whole record: every link and body of every chain, every signed checkpoint, every line of the witness, and
 * SQLite's own structures. Finds what is not as it was written; changes nothing.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { isHeddleError } from "@heddle/protocol";
import { genesisOf, hashOf, sha256 } from "./chain.ts";
import { checkCheckpoint, readCheckpoints } from "./checkpoints.ts";
import type { Connection, Row } from "./driver.ts";
import type { HomePaths } from "./home.ts";
import type { Damage, Notice, VerifyReport } from "./journal.ts";
import { loadVerifier, type Verifier } from "./keys.ts";
import { EVENT_COLUMNS, integer, optionalText, text, toLink } from "./rows.ts";
import { faultOf } from "./store-errors.ts";
import { firstLoss, readClaims } from "./witness.ts";

/** Between two chunks the event loop runs. */
const CHUNK = 256;
/** The first ones matter; a rewritten store would fill memory with the rest. */
const MAX_REPORTED = 100;

export async function verifyStore(connection: Connection, paths: HomePaths, stream?: string): Promise<VerifyReport> {
  const damage: Damage[] = [];
  const notices: Notice[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };

  // What was promised is read before what is there: commits that happen meanwhile are no damage.
  const { claims, tornLines } = readClaims(paths.witness);
  if (tornLines > 0) notices.push({ kind: "witness-torn", message: tornMessage(paths.witness, tornLines) });

  let walked: Walk = { events: 0, streams: 0, purged: 0 };
  let checkpoints = 0;
  try {
    if (stream === undefined) checkStructure(connection, report);
    walked = await walkChains(connection, stream, report);
    report(firstLoss(connection, claims, stream));
    const key = loadKey(paths.keys, notices);
    for (const file of readCheckpoints(paths.checkpoints, stream)) {
      if (file.tornLines > 0) {
        notices.push({ kind: "checkpoint-torn", message: tornMessage(file.path, file.tornLines) });
      }
      if (key.kind === "unusable") continue;
      for (const checkpoint of file.checkpoints) {
        report(checkCheckpoint(connection, checkpoint, key.verifier));
        checkpoints += 1;
        if (checkpoints % CHUNK === 0) await breathe();
      }
    }
  } catch (error) {
    report(asDamage(error));
  }
  const { events, streams, purged } = walked;
  if (purged > 0) {
    notices.push({ kind: "bodies-purged", message: `the content of ${purged} event(s) of deleted threads was purged` });
  }
  return { events, streams, checkpoints, damage, notices };
}

export function tornMessage(path: string, lines: number): string {
  return `${path} has ${lines} unfinished line(s) from a crash; the others stand`;
}

type Key = { readonly kind: "usable"; readonly verifier: Verifier | undefined } | { readonly kind: "unusable" };

function loadKey(folder: string, notices: Notice[]): Key {
  try {
    return { kind: "usable", verifier: loadVerifier(folder) };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    notices.push({ kind: "key-unusable", message: `checkpoints cannot be verified: ${error.message}` });
    return { kind: "unusable" };
  }
}

/** A page that SQLite cannot follow ends the walk; that is damage to report, not a failure to verify. */
export function asDamage(error: unknown): Damage {
  const isDamage = faultOf(error) === "damaged" || (isHeddleError(error) && error.code === "store.damaged");
  if (!isDamage || !(error instanceof Error)) throw error;
  return { kind: "file-corrupt", message: `the database file is damaged: ${error.message}` };
}

function checkStructure(connection: Connection, report: (damage: Damage) => void): void {
  const said = text(connection.get("PRAGMA quick_check(1)"), "quick_check");
  if (said !== "ok") report({ kind: "file-corrupt", message: `the database file is damaged: ${said}` });
}

interface Walk {
  readonly events: number;
  readonly streams: number;
  /** Bodies of deleted threads. */
  readonly purged: number;
}

interface Head {
  readonly version: number;
  readonly hash: string;
}

async function walkChains(
  connection: Connection,
  stream: string | undefined,
  report: (damage: Damage) => void,
): Promise<Walk> {
  const heads = new Map<string, Head>();
  const purged = createPurgedBodies();
  const where = stream === undefined ? "position > ?" : "position > ? AND stream = ?";
  const order = stream === undefined ? "position" : "version";
  const sql = `SELECT ${EVENT_COLUMNS} FROM events WHERE ${where} ORDER BY ${order} LIMIT ${CHUNK}`;
  let events = 0;
  let after = 0;
  for (;;) {
    const rows = stream === undefined ? connection.all(sql, after) : connection.all(sql, after, stream);
    for (const row of rows) {
      const name = text(row, "stream");
      const head = heads.get(name) ?? { version: 0, hash: genesisOf(name) };
      const damage = checkLink(row, head);
      if (damage !== undefined) report(damage);
      purged.look(row);
      heads.set(name, { version: integer(row, "version"), hash: text(row, "hash") });
      after = integer(row, "position");
    }
    events += rows.length;
    if (rows.length < CHUNK) {
      for (const damage of purged.unexplained()) report(damage);
      return { events, streams: heads.size, purged: purged.explained() };
    }
    await breathe();
  }
}

interface PurgedBodies {
  look(row: Row): void;
  /** Bodies that are gone although no deletion is recorded behind them. */
  unexplained(): Iterable<Damage>;
  explained(): number;
}

/** A body may be missing only in a thread whose last event says that it was deleted. */
function createPurgedBodies(): PurgedBodies {
  const missing = new Map<string, { readonly version: number; readonly position: number; count: number }>();
  let explained = 0;
  return {
    look(row) {
      const stream = text(row, "stream");
      const known = missing.get(stream);
      if (row["body"] !== null) {
        if (text(row, "type") !== "thread.deleted") return;
        explained += known?.count ?? 0;
        missing.delete(stream);
      } else if (known !== undefined) known.count += 1;
      else missing.set(stream, { version: integer(row, "version"), position: integer(row, "position"), count: 1 });
    },
    *unexplained() {
      for (const [stream, { version, position }] of missing) {
        const message = `the content of event ${version} of ${stream} is gone, and no deletion is recorded`;
        yield { kind: "body-altered", message, stream, version, position };
      }
    },
    explained: () => explained,
  };
}

/** One event against the one before it. */
export function checkLink(row: Row, before: Head): Damage | undefined {
  const link = toLink(row);
  const { stream, version } = link;
  const named = `event ${version} of ${stream}`;
  const found = (kind: Damage["kind"], message: string): Damage => {
    return { kind, message, stream, version, position: integer(row, "position") };
  };
  if (version !== before.version + 1) return found("version-gap", `${named} follows ${before.version}`);
  if (link.prevHash !== before.hash) return found("chain-broken", `${named} does not link to the one before it`);
  if (hashOf(link) !== text(row, "hash")) return found("event-altered", `${named} was altered`);
  const body = optionalText(row, "body");
  if (body !== undefined && sha256(body) !== link.bodyHash)
    return found("body-altered", `the content of ${named} was altered`);
  return undefined;
}
