/** The table of owners in SQLite, and the check of every append. */
import { leaseLost, type EventBody, type Lease } from "@heddle/protocol";
import { integer } from "../record/rows.ts";
import { ownersOf, type LeaseTime } from "../sql/leases.ts";
import type { Connection } from "./driver.ts";

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

/** Inside the write transaction: nothing can be taken between this and the commit. */
export function refuseLost(connection: Connection, lease: Lease): void {
  const row = connection.get("SELECT epoch FROM leases WHERE subject = ?", lease.subject);
  const current = row === undefined ? undefined : integer(row, "epoch");
  if (current !== lease.epoch) throw leaseLost(lease, current);
}

/** Inside the write transaction, after the events. */
export function recordOwners(connection: Connection, events: readonly EventBody[], time: LeaseTime): void {
  for (const { sql, values } of ownersOf(events, time)) connection.run(sql, ...values);
}
