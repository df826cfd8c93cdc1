/** Opening the record for those who only look: nothing is made where nothing is. */
import { stat } from "node:fs/promises";
import path from "node:path";
import { openJournal, type Journal, type TicketWriter } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";
import { heddleHome } from "../config/read-config.ts";
import { storeAddressOf } from "../config/store-address.ts";

/** Each of these tells that there was a record, also when the others are gone. */
const TRACES = ["heddle.db", "witness.log", "checkpoints"];

/** undefined when this home has no record yet. */
export async function openRecord(env: NodeJS.ProcessEnv, tickets?: TicketWriter): Promise<Journal | undefined> {
  const home = heddleHome(env);
  const store = await storeAddressOf(env);
  if (store !== undefined) return openJournal({ home, store, tickets, secrets: [] });
  const traces = await Promise.all(TRACES.map((name) => stat(path.join(home, name)).catch(() => undefined)));
  return traces.every((trace) => trace === undefined) ? undefined : openJournal({ home, secrets: [] });
}

const PAGE = 500;

/** Every event of one stream, or of all, oldest first, a page at a time. */
export async function* allEvents(journal: Journal, stream?: string): AsyncGenerator<StoredEvent, void, void> {
  let after = 0;
  for (;;) {
    const page = await journal.read({ ...(stream === undefined ? {} : { stream }), after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = stream === undefined ? last.position : last.version;
  }
}
