/**
 * The tables of a journal and the steps to them. Machines are upgraded one by one, so a step only adds, and says which
 * versions may still read (`min_reader`) and write (`min_writer`) beside it; one process at a time carries steps out.
 */
import { randomUUID } from "node:crypto";
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Durability } from "../journal.ts";
import { PROJECTIONS } from "../projections/projections.ts";
import { integer, text, type Row } from "../record/rows.ts";
import { PROJECTION_TABLES } from "../sql/projection-tables.ts";
import type { PostgresAddress } from "./address.ts";
import { connect, type Link } from "./driver.ts";

interface Step {
  readonly sql: string;
  readonly minReader: number;
  readonly minWriter: number;
}

const TEXT = 'text COLLATE "C"';

/** Events and the keys of appends only grow; the one allowed change is to purge a body. */
const RECORD = `
CREATE TABLE journal_state (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id text NOT NULL,
  incarnation bigint NOT NULL,
  schema_version bigint NOT NULL,
  min_reader bigint NOT NULL,
  min_writer bigint NOT NULL,
  damage text
);
CREATE TABLE events (
  position bigint PRIMARY KEY,
  stream ${TEXT} NOT NULL,
  version bigint NOT NULL,
  id ${TEXT} NOT NULL UNIQUE,
  at bigint NOT NULL,
  author ${TEXT} NOT NULL,
  type ${TEXT} NOT NULL,
  v bigint NOT NULL,
  body ${TEXT},
  body_hash ${TEXT} NOT NULL,
  prev_hash ${TEXT} NOT NULL,
  hash ${TEXT} NOT NULL,
  UNIQUE (stream, version)
);
CREATE TABLE append_keys (
  key ${TEXT} PRIMARY KEY,
  content_hash ${TEXT} NOT NULL,
  stream ${TEXT} NOT NULL,
  first_version bigint NOT NULL,
  last_version bigint NOT NULL
);
CREATE TABLE purges (stream ${TEXT} PRIMARY KEY, before bigint NOT NULL);
CREATE TABLE lease_owners (
  id ${TEXT} PRIMARY KEY,
  beat bigint NOT NULL,
  expires_at bigint NOT NULL,
  lease_ms bigint NOT NULL
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE FUNCTION only_purge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.body IS NOT NULL THEN
    RAISE EXCEPTION 'a body can only be purged' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF (NEW.position, NEW.stream, NEW.version, NEW.id, NEW.at, NEW.author, NEW.type, NEW.v, NEW.body_hash, NEW.prev_hash, NEW.hash)
    IS DISTINCT FROM
    (OLD.position, OLD.stream, OLD.version, OLD.id, OLD.at, OLD.author, OLD.type, OLD.v, OLD.body_hash, OLD.prev_hash, OLD.hash)
  THEN RAISE EXCEPTION 'events never change' USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER events_keep BEFORE DELETE ON events EXECUTE FUNCTION refuse_change('events are never deleted');
CREATE TRIGGER events_truncate BEFORE TRUNCATE ON events EXECUTE FUNCTION refuse_change('events are never deleted');
CREATE TRIGGER events_purge BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION only_purge();
CREATE TRIGGER append_keys_keep BEFORE DELETE OR UPDATE OR TRUNCATE ON append_keys
  EXECUTE FUNCTION refuse_change('keys never change');
`;

/** What each machine has signed, beside what it keeps itself. */
const CHECKPOINTS = `
CREATE TABLE signing_keys (key_id ${TEXT} PRIMARY KEY, public_pem ${TEXT} NOT NULL);
CREATE TABLE checkpoints (
  stream ${TEXT} NOT NULL,
  version bigint NOT NULL,
  key_id ${TEXT} NOT NULL,
  line ${TEXT} NOT NULL,
  PRIMARY KEY (stream, version, key_id)
);
CREATE TRIGGER signing_keys_keep BEFORE DELETE OR UPDATE OR TRUNCATE ON signing_keys
  EXECUTE FUNCTION refuse_change('keys never change');
CREATE TRIGGER checkpoints_keep BEFORE DELETE OR UPDATE OR TRUNCATE ON checkpoints
  EXECUTE FUNCTION refuse_change('checkpoints never change');
`;

const STEPS: readonly Step[] = [
  { sql: RECORD, minReader: 1, minWriter: 1 },
  { sql: CHECKPOINTS, minReader: 1, minWriter: 1 },
];
export const NEWEST = STEPS.length;

/** As in SQLite, in the words of Postgres. An index of a table of entries is walked in the order of their positions. */
const PROJECTION_DDL = PROJECTION_TABLES.replaceAll(/\) STRICT(, WITHOUT ROWID)?;/g, ");")
  .replaceAll(/\bTEXT\b/g, TEXT)
  .replaceAll(/\bINTEGER\b/g, "bigint")
  .replaceAll(/\bREAL\b/g, "double precision")
  .replaceAll(/ ON evidence \(([^)]*)\)/g, " ON evidence ($1, position)");

/** Words of entries, one row each: an index of arrays finds those that have several. */
const WORDS_DDL = `
CREATE TABLE evidence_words (position bigint PRIMARY KEY, words text[] COLLATE "C" NOT NULL);
CREATE INDEX evidence_words_having ON evidence_words USING gin (words);
`;

export const PROJECTION_NAMES: readonly string[] = [...PROJECTIONS.map(({ table }) => table), "evidence_words"];

export interface JournalState {
  readonly id: string;
  readonly incarnation: number;
  readonly schemaVersion: number;
  readonly minReader: number;
  readonly minWriter: number;
  /** Why every append is refused. */
  readonly damage: string | undefined;
  readonly durability: Durability;
}

/** With what the server waits for before it says that something is stored. */
export const STATE = `SELECT id, incarnation, schema_version, min_reader, min_writer, damage,
  current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
    AS has_standby FROM journal_state`;

export function toState(row: Row | undefined): JournalState {
  return {
    id: text(row, "id"),
    incarnation: integer(row, "incarnation"),
    schemaVersion: integer(row, "schema_version"),
    minReader: integer(row, "min_reader"),
    minWriter: integer(row, "min_writer"),
    damage: row?.["damage"] === null ? undefined : text(row, "damage"),
    durability: row?.["has_standby"] === "t" ? "quorum" : "primary",
  };
}

/** Brings the schema to what this version writes, and returns what is true of the journal. */
export async function openSchema(address: PostgresAddress, lock: string): Promise<JournalState> {
  const link = await connect({ address, purpose: "migrate", settings: { lock_timeout: "30s" } });
  try {
    const known = await stateIn(link, address);
    const state = known !== undefined && known.schemaVersion >= NEWEST ? known : await migrate(link, address, lock);
    if (state.minReader > NEWEST) throw newer(address, state.minReader);
    return state;
  } finally {
    await link.close();
  }
}

/** undefined: there is none yet. */
async function stateIn(link: Link, { schema }: PostgresAddress): Promise<JournalState | undefined> {
  const there = await link.send({ sql: "SELECT to_regclass(?) AS found", values: [`${schema}.journal_state`] });
  if (there.rows[0]?.["found"] === null) return undefined;
  return toState((await link.send({ sql: STATE, values: [] })).rows[0]);
}

async function migrate(link: Link, address: PostgresAddress, lock: string): Promise<JournalState> {
  await link.exec("BEGIN");
  await link.exec(`SELECT pg_advisory_xact_lock(${lock})`);
  const from = (await stateIn(link, address))?.schemaVersion ?? 0;
  if (from < NEWEST) {
    await link.exec(`CREATE SCHEMA IF NOT EXISTS ${address.schema}`);
    for (const { sql } of STEPS.slice(from)) await link.exec(sql);
    if (from === 0) {
      await link.exec(PROJECTION_DDL + WORDS_DDL);
      const sql = `INSERT INTO journal_state (id, incarnation, schema_version, min_reader, min_writer) VALUES (?, 1, 0, 0, 0)`;
      await link.send({ sql, values: [randomUUID()] });
    }
    const { minReader = 1, minWriter = 1 } = STEPS.at(-1) ?? {};
    const sql = "UPDATE journal_state SET schema_version = ?, min_reader = ?, min_writer = ?";
    await link.send({ sql, values: [NEWEST, minReader, minWriter] });
  }
  failpoint("journal.migrate.before-commit");
  await link.exec("COMMIT");
  return toState((await link.send({ sql: STATE, values: [] })).rows[0]);
}

export function newer({ name }: PostgresAddress, found: number): HeddleError {
  const message = `${name} was made for a newer Heddle (it needs version ${found} of the schema, this one knows ${NEWEST}); update Heddle`;
  return new HeddleError("store.newer", message, { details: { found, known: NEWEST } });
}
