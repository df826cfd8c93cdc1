/** Leases in SQL: the check of every append, and the rows by which a process shows other hosts that it lives. */
import { holderNamed, leaseLost, ownerOf, type EventBody, type Lease } from "@heddle/protocol";
import { createLeases, FENCED_MS, LEASE_MS, type LeaseRow, type Leases, type OwnerRow } from "../record/leases.ts";
import { integer, text, type Row } from "../record/rows.ts";
import type { Connection, Read } from "./driver.ts";
import type { OpenJournalOptions } from "./open-store.ts";

/**
 * One row for each process that holds something, renewed for all at once. `beat` changes with each renewal, so that
 * watchers need no clock of the owner. Not derived from events: a lost row is made again by the next taking.
 */
export const LEASE_OWNERS_TABLE = `
CREATE TABLE lease_owners (
  id TEXT PRIMARY KEY,
  beat INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

export interface LeaseTime {
  readonly now: number;
  readonly leaseMs: number;
}

export function leaseTime({ now = Date.now, leaseMs = LEASE_MS }: LeaseOptions): () => LeaseTime {
  return () => ({ now: Math.trunc(now()), leaseMs });
}

type LeaseOptions = Pick<OpenJournalOptions, "now" | "leaseMs">;

/** `write`: in the turn of this process, inside a transaction. */
export function sqliteLeases(options: LeaseOptions, read: Read, write: Read): Leases {
  const time = leaseTime(options);
  return createLeases({
    leaseMs: options.leaseMs ?? LEASE_MS,
    now: () => time().now,
    renew: (owner) => write((connection) => renew(connection, owner, time())),
    owner: (owner) => read((connection) => readOwner(connection, owner)),
    held: () => read(readHeld),
  });
}

/** Inside the write transaction: nothing can be taken between this and the commit. */
export function refuseLost(connection: Connection, lease: Lease): void {
  const row = connection.get("SELECT epoch FROM leases WHERE subject = ?", lease.subject);
  const current = row === undefined ? undefined : integer(row, "epoch");
  if (current !== lease.epoch) throw leaseLost(lease, current);
}

/** Inside the write transaction, after the events: new holders are visible from then on. */
export function recordOwners(connection: Connection, events: readonly EventBody[], { now, leaseMs }: LeaseTime): void {
  for (const body of events) {
    if (!("holder" in body)) continue;
    connection.run("DELETE FROM lease_owners WHERE id NOT IN (SELECT owner FROM leases)");
    // No renewal of a fenced process makes its leases last again.
    const [until, lasts] = body.type === "worker.fenced" ? [0, FENCED_MS] : [now + leaseMs, leaseMs];
    connection.run(
      `INSERT INTO lease_owners (id, beat, expires_at, lease_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET beat = beat + 1, expires_at = excluded.expires_at, lease_ms = excluded.lease_ms`,
      ownerOf(body.holder),
      now,
      until,
      lasts,
    );
  }
}

/** Inside a write transaction; returns what the process holds. */
function renew(connection: Connection, owner: string, { now, leaseMs }: LeaseTime): readonly Lease[] {
  connection.run("UPDATE lease_owners SET beat = beat + 1, expires_at = ? WHERE id = ?", now + leaseMs, owner);
  return connection.all("SELECT subject, epoch FROM leases WHERE owner = ?", owner).map(toLease);
}

function readOwner(connection: Connection, owner: string): OwnerRow | undefined {
  const row = connection.get("SELECT beat, expires_at, lease_ms FROM lease_owners WHERE id = ?", owner);
  if (row === undefined) return undefined;
  return { beat: integer(row, "beat"), expiresAt: integer(row, "expires_at"), leaseMs: integer(row, "lease_ms") };
}

function readHeld(connection: Connection): readonly LeaseRow[] {
  return connection.all("SELECT subject, stream, owner, epoch FROM leases ORDER BY subject").map((row) => ({
    ...toLease(row),
    stream: text(row, "stream"),
    holder: holderNamed(text(row, "owner")),
  }));
}

function toLease(row: Row): Lease {
  return { subject: text(row, "subject"), epoch: integer(row, "epoch") };
}
