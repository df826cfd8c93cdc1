/** SQLite as a back-end of the suites that every store has to pass. */
import type { Journal } from "../journal.ts";
import { testHome } from "../suite/journal.samples.ts";
import type { SuiteStore } from "../suite/journal.suite.ts";
import { openJournal } from "./sqlite.ts";

export const BACKEND = import.meta.url;

export async function newStore(): Promise<SuiteStore> {
  const home = await testHome();
  return {
    address: home.path,
    backend: BACKEND,
    open: (options) => openJournal({ home: home.path, ...options }),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

export function openAt(address: string): Promise<Journal> {
  return openJournal({ home: address });
}
