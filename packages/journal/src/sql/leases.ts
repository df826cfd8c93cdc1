/** Leases in SQL: the rows by which a process shows other hosts that it lives. */
import { holderNamed, ownerOf, type EventBody, type Lease } from "@heddle/protocol";
import { createLeases, FENCED_MS, LEASE_MS, type LeaseRow, type Leases, type OwnerRow } from "../record/leases.ts";
import { integer, text, type Row } from "../record/rows.ts";
import { all, get, rowsAs, type Ask, type Asking, type Statement } from "./ask.ts";

export interface LeaseTime {
  readonly now: number;
  readonly leaseMs: number;
}

export interface LeaseOptions {
  readonly now?: (() => number) | undefined;
  readonly leaseMs?: number | undefined;
}

export function leaseTime({ now = Date.now, leaseMs = LEASE_MS }: LeaseOptions): () => LeaseTime {
  return () => ({ now: Math.trunc(now()), leaseMs });
}

/** `write`: one write of this process, in its turn. */
export function sqlLeases(options: LeaseOptions, ask: Ask, write: Ask): Leases {
  const time = leaseTime(options);
  return createLeases({
    leaseMs: options.leaseMs ?? LEASE_MS,
    now: () => time().now,
    renew: (owner) => write(() => renew(owner, time())),
    owner: (owner) => ask(() => readOwner(owner)),
    held: () => ask(() => rowsAs(HELD, toLeaseRow)),
  });
}

const HELD = "SELECT subject, stream, owner, epoch FROM leases ORDER BY subject";
/** Those who hold nothing any more are forgotten. */
const FORGET = "DELETE FROM lease_owners WHERE id NOT IN (SELECT owner FROM leases)";
const RECORD = `INSERT INTO lease_owners (id, beat, expires_at, lease_ms) VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET beat = lease_owners.beat + 1, expires_at = excluded.expires_at, lease_ms = excluded.lease_ms`;

/** In the transaction of the events, after them: new holders are visible from then on. */
export function ownersOf(events: readonly EventBody[], { now, leaseMs }: LeaseTime): readonly Statement[] {
  return events.flatMap((body) => {
    if (!("holder" in body)) return [];
    // No renewal of a fenced process makes its leases last again.
    const [until, lasts] = body.type === "worker.fenced" ? [0, FENCED_MS] : [now + leaseMs, leaseMs];
    return [
      { sql: FORGET, values: [] },
      { sql: RECORD, values: [ownerOf(body.holder), now, until, lasts] },
    ];
  });
}

/** Returns what the process holds. */
function* renew(owner: string, { now, leaseMs }: LeaseTime): Asking<readonly Lease[]> {
  yield* all("UPDATE lease_owners SET beat = beat + 1, expires_at = ? WHERE id = ?", now + leaseMs, owner);
  return yield* rowsAs("SELECT subject, epoch FROM leases WHERE owner = ?", toLease, owner);
}

function* readOwner(owner: string): Asking<OwnerRow | undefined> {
  const row = yield* get("SELECT beat, expires_at, lease_ms FROM lease_owners WHERE id = ?", owner);
  if (row === undefined) return undefined;
  return { beat: integer(row, "beat"), expiresAt: integer(row, "expires_at"), leaseMs: integer(row, "lease_ms") };
}

function toLeaseRow(row: Row): LeaseRow {
  return { ...toLease(row), stream: text(row, "stream"), holder: holderNamed(text(row, "owner")) };
}

function toLease(row: Row): Lease {
  return { subject: text(row, "subject"), epoch: integer(row, "epoch") };
}
