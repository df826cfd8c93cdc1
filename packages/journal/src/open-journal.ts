/** The one way to a journal: SQLite in the home, or Postgres where an address says so. Nothing of a store that is not opened is loaded. */
import { HeddleError } from "@heddle/protocol";
import type { Journal } from "./journal.ts";
import type { TicketWriter } from "./record/tickets.ts";
import type { OpenJournalOptions as SqliteOptions } from "./sqlite/open-store.ts";
import { openJournal as openSqlite } from "./sqlite/sqlite.ts";

export interface OpenJournalOptions extends SqliteOptions {
  /** `postgres://user@host/database?schema=name`; absent: the SQLite file of the home. */
  readonly store?: string | undefined;
  /** Of a server: the queue in the same database, written with the events. */
  readonly tickets?: TicketWriter | undefined;
  /** Of a server: how long it is waited for when it is away; absent: half a minute. */
  readonly patienceMs?: number | undefined;
}

/** For the owner of a store on a server: goes on with what is there, where acknowledged events are lost. */
export async function adoptStore(store: string): Promise<number> {
  const { adoptStore: adopt } = await import("./postgres/adopt.ts");
  return adopt(store);
}

export async function openJournal({ store, ...options }: OpenJournalOptions): Promise<Journal> {
  if (store === undefined) return openSqlite(options);
  if (!/^postgres(ql)?:\/\//.test(store))
    throw new HeddleError("config.invalid", "the address of a store is postgres://user@host/database?schema=name");
  const { openPostgresJournal } = await import("./postgres/open.ts");
  return openPostgresJournal({ ...options, url: store });
}
