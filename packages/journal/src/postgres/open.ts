/** Opens a journal on Postgres: its schema is brought up to date, and what this machine was told is looked for. */
import { makePrivateFolder, pathsOfStore } from "../home.ts";
import type { Journal } from "../journal.ts";
import { readAddress } from "./address.ts";
import { lockOf } from "./lock.ts";
import type { PostgresOptions } from "./options.ts";
import { PostgresJournal } from "./postgres.ts";
import { openSchema } from "./schema.ts";
import { toStoreError } from "./store-errors.ts";

export async function openPostgresJournal(options: PostgresOptions): Promise<Journal> {
  const address = readAddress(options.url);
  const lock = lockOf(address);
  try {
    const state = await openSchema(address, lock);
    const { folder, paths } = pathsOfStore(options.home, state);
    makePrivateFolder(folder);
    const journal = new PostgresJournal(options, { address, lock, state, paths });
    await journal.check();
    return journal;
  } catch (error) {
    throw toStoreError(error, address.name);
  }
}
