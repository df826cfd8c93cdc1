/**
 * Stores a group of appends in one transaction: what they depend on is looked up at once, each is decided by itself, and what
 * they write travels with the commit. `record/prepare.ts` decides what an append becomes; a refused one writes nothing.
 */
import { isHeddleError, leaseLost, type Lease, type StoredEvent } from "@heddle/protocol";
import type { Found, Look, RowChange } from "../projections/changes.ts";
import { PROJECTIONS } from "../projections/projections.ts";
import { refuseBusyFolder, type AppendGuard } from "../record/guard.ts";
import {
  chain,
  emptyHead,
  parentsOf,
  refuseDeleted,
  refuseOtherContent,
  type ChainedEvent,
  type Head,
  type PreparedAppend,
} from "../record/prepare.ts";
import { integer, optionalInteger, text, type Row } from "../record/rows.ts";
import type { TicketWriter } from "../record/tickets.ts";
import type { Statement, Value } from "../sql/ask.ts";
import { createKnownRows, type KnownRows } from "../sql/known-rows.ts";
import { ownersOf, type LeaseTime } from "../sql/leases.ts";
import { toState, STATE, type JournalState } from "./schema.ts";
import type { Transaction } from "./transaction.ts";
import { insertsOf, lookups, statementsOf } from "./writes.ts";

export type Decided =
  | { readonly kind: "stored"; readonly events: readonly StoredEvent[] }
  /** The key was used before: of this group, or earlier, where its events are read afterwards. */
  | { readonly kind: "repeat"; readonly of: Range }
  | { readonly kind: "refused"; readonly error: unknown };

export interface Range {
  readonly stream: string;
  readonly first: number;
  readonly last: number;
}

export interface GroupOptions {
  readonly time: () => LeaseTime;
  /** Throws why nothing may be written; asked under the lock. */
  readonly allow: (state: JournalState) => void;
  /** The queue of this store; its tickets are committed with the events. */
  readonly tickets?: TicketWriter | undefined;
}

interface Group {
  readonly heads: Map<string, Head>;
  readonly keys: Map<string, { readonly contentHash: string; readonly of: Range }>;
  readonly known: KnownRows;
  readonly changes: RowChange[];
  readonly inserted: { readonly position: number; readonly chained: ChainedEvent }[];
  readonly beside: Statement[];
  position: number;
}

const LAST = "SELECT max(position) AS last FROM events";
const HEADS = `SELECT asked.stream, head.version, head.hash, head.at, head.type
  FROM unnest(?::text[]) AS asked(stream) CROSS JOIN LATERAL
    (SELECT version, hash, at, type FROM events WHERE events.stream = asked.stream ORDER BY version DESC LIMIT 1) AS head`;
const KEYS =
  "SELECT key, content_hash, stream, first_version, last_version FROM append_keys WHERE key = ANY (?::text[])";

export async function storeGroup(
  transaction: Transaction,
  members: readonly PreparedAppend[],
  options: GroupOptions,
): Promise<readonly Decided[]> {
  const group = await lookUp(transaction, members, options);
  const decided = members.map((prepared): Decided => {
    try {
      return decide(group, prepared, options.time());
    } catch (error) {
      // Anything else is a defect, and fails all.
      if (!isHeddleError(error)) throw error;
      return { kind: "refused", error };
    }
  });
  const tickets = members.flatMap(({ append }, index) =>
    decided[index]?.kind === "stored" ? (append.tickets ?? []) : [],
  );
  if (tickets.length > 0) await options.tickets?.write(tickets, transaction.run);
  transaction.write([...insertsOf(group.inserted), ...statementsOf(group.changes), ...group.beside]);
  return decided;
}

/** By which it is known whether a group was stored. */
export function firstIdOf(decided: readonly Decided[]): string | undefined {
  return decided.flatMap((one) => (one.kind === "stored" ? one.events : []))[0]?.id;
}

async function lookUp(
  transaction: Transaction,
  members: readonly PreparedAppend[],
  { allow }: GroupOptions,
): Promise<Group> {
  const streams = new Set(members.flatMap(({ append }) => [append.stream, ...parentsOf(append)]));
  const keys = members.flatMap(({ append }) => append.key ?? []);
  const looks = lookups(members.flatMap((member) => looksOf(member)));
  const [states = [], lasts = [], heads = [], used = [], ...found] = await transaction.look([
    { sql: STATE, values: [] },
    { sql: LAST, values: [] },
    { sql: HEADS, values: [arrayOf([...streams])] },
    { sql: KEYS, values: [arrayOf(keys)] },
    ...looks.map(({ statement }) => statement),
  ]);
  allow(toState(states[0]));
  const [last] = lasts;
  const known = createKnownRows();
  for (const [index, { table }] of looks.entries()) known.add(table, found[index] ?? []);
  return {
    heads: new Map(heads.map((row) => [text(row, "stream"), toHead(row)])),
    keys: new Map(used.map((row) => [text(row, "key"), { contentHash: text(row, "content_hash"), of: toRange(row) }])),
    known,
    changes: [],
    inserted: [],
    beside: [],
    position: (last && optionalInteger(last, "last")) ?? 0,
  };
}

/** What its projections look up depends on nothing that is decided under the lock. */
function looksOf({ append, bodies }: PreparedAppend): readonly Look[] {
  const { stream, author, lease, guard } = append;
  const at = { stream, author, version: 0, position: 0, at: 0, id: "", hash: "", prevHash: "" };
  const ofProjections = bodies.flatMap(({ body }) =>
    PROJECTIONS.flatMap((projection) => projection.needs?.({ ...at, body }) ?? []),
  );
  return [
    ...ofProjections,
    ...(lease === undefined ? [] : [lookAtLease(lease)]),
    ...(guard === undefined ? [] : [lookAtFolder(guard)]),
  ];
}

function lookAtFolder({ folder }: AppendGuard): Look {
  return { table: "tasks", columns: ["id", "is_exclusive"], where: { folder, is_held: 1 } };
}

function lookAtLease({ subject }: Lease): Look {
  return { table: "leases", columns: ["epoch"], where: { subject } };
}

function decide(group: Group, prepared: PreparedAppend, time: LeaseTime): Decided {
  const { append, contentHash } = prepared;
  const { stream, key, lease, guard } = append;
  const used = key === undefined ? undefined : group.keys.get(key);
  if (key !== undefined && used !== undefined) {
    if (used.contentHash === contentHash) return { kind: "repeat", of: used.of };
    // The one who used the key has the lease now, which is what the caller must know.
    if (lease !== undefined) refuseLost(group, lease);
    refuseOtherContent(key, used.of.stream);
  }
  if (lease !== undefined) refuseLost(group, lease);
  if (guard !== undefined) refuseGuarded(group, stream, guard);
  for (const parent of parentsOf(append)) refuseDeleted(parent, headOf(group, parent));
  const head = headOf(group, stream);
  const events = chain(prepared, head, time.now).map((chained) => take(group, chained));
  group.beside.push(...ownersOf(append.events, time));
  if (key !== undefined)
    useKey(group, prepared, { stream, first: head.version + 1, last: head.version + events.length });
  return { kind: "stored", events };
}

function take(group: Group, chained: ChainedEvent): StoredEvent {
  group.position += 1;
  const { position } = group;
  const event: StoredEvent = { position, ...chained.event, prevHash: chained.prevHash };
  for (const projection of PROJECTIONS) {
    const found: Found = projection.needs?.(event).map((look) => group.known.find(look)) ?? [];
    for (const change of projection.changes(event, found)) {
      group.known.apply(change);
      group.changes.push(change);
    }
  }
  const { stream, version, hash, at, body } = event;
  group.heads.set(stream, { version, hash, at, type: body.type });
  group.inserted.push({ position, chained });
  return event;
}

function useKey(group: Group, { append, contentHash }: PreparedAppend, of: Range): void {
  const key = append.key ?? "";
  group.keys.set(key, { contentHash, of });
  group.beside.push({
    sql: "INSERT INTO append_keys (key, content_hash, stream, first_version, last_version) VALUES (?, ?, ?, ?, ?)",
    values: [key, contentHash, of.stream, of.first, of.last],
  });
}

function refuseLost({ known }: Group, lease: Lease): void {
  const [row] = known.find(lookAtLease(lease));
  const current = row === undefined ? undefined : integer(row, "epoch");
  if (current !== lease.epoch) throw leaseLost(lease, current);
}

function refuseGuarded({ known }: Group, stream: string, guard: AppendGuard): void {
  const rival = known
    .find(lookAtFolder(guard))
    .find((row) => text(row, "id") !== stream && (guard.isExclusive || integer(row, "is_exclusive") === 1));
  if (rival !== undefined) refuseBusyFolder(guard, text(rival, "id"));
}

function headOf({ heads }: Group, stream: string): Head {
  return heads.get(stream) ?? emptyHead(stream);
}

function toHead(row: Row): Head {
  return {
    version: integer(row, "version"),
    hash: text(row, "hash"),
    at: integer(row, "at"),
    type: text(row, "type"),
  };
}

function toRange(row: Row): Range {
  return { stream: text(row, "stream"), first: integer(row, "first_version"), last: integer(row, "last_version") };
}

/** A list of texts as Postgres reads them. */
function arrayOf(texts: readonly string[]): Value {
  return `{${texts.map((one) => `"${one.replaceAll(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
