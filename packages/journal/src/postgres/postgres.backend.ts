/** Postgres as a back-end of the suites: each store is a schema of its own in the server that the run has started. */
import { randomUUID } from "node:crypto";
import type { Journal } from "../journal.ts";
import { testHome } from "../suite/journal.samples.ts";
import type { SuiteStore } from "../suite/journal.suite.ts";
import { readAddress } from "./address.ts";
import { connect } from "./driver.ts";
import type { PostgresOptions } from "./options.ts";
import { openPostgresJournal } from "./open.ts";

export const BACKEND = import.meta.url;

export interface PostgresStore extends SuiteStore {
  readonly url: string;
  readonly home: string;
  readonly schema: string;
  open(options?: Partial<PostgresOptions>): Promise<Journal>;
  /** As its owner, beside Heddle. */
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

export async function newStore(server = process.env["HEDDLE_TEST_POSTGRES"] ?? ""): Promise<PostgresStore> {
  const home = await testHome();
  const schema = `t_${randomUUID().slice(0, 8)}`;
  const url = `${server}?schema=${schema}`;
  const sql = async (text: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const link = await connect({ address: readAddress(url), purpose: "migrate" });
    try {
      return (await link.exec(text)).rows;
    } finally {
      await link.close();
    }
  };
  return {
    url,
    home: home.path,
    schema,
    address: JSON.stringify({ url, home: home.path }),
    backend: BACKEND,
    open: (options = {}) => openPostgresJournal({ url, home: home.path, ...options }),
    sql,
    async [Symbol.asyncDispose]() {
      await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await home[Symbol.asyncDispose]();
    },
  };
}

export function openAt(address: string): Promise<Journal> {
  return openPostgresJournal(JSON.parse(address) as PostgresOptions);
}
