/**
 * The only file that knows the driver: connections whose statements are sent without waiting for each other's answers, and
 * that are dropped at the first doubt. Loaded when a store on Postgres is opened, and not before.
 */
import type { Client, ClientConfig, CustomTypesConfig, QueryResult } from "pg";
import type { Statement } from "../sql/ask.ts";
import type { Row } from "../record/rows.ts";
import type { PostgresAddress } from "./address.ts";

/** A name server and a handshake over a slow line. */
const CONNECT_MS = 10_000;

export interface LinkOptions {
  readonly address: PostgresAddress;
  /** Shown by the server in its list of connections. */
  readonly purpose: "append" | "read" | "listen" | "notify" | "migrate";
  readonly settings?: Readonly<Record<string, string | number>>;
}

export interface Link {
  /** In the order of the calls; the answers come as they come. */
  send(statement: Statement): Promise<QueryRows>;
  /** Parameters as `$1`. */
  query(text: string, values: readonly unknown[]): Promise<QueryRows>;
  /** Without parameters; several statements may be in it. */
  exec(sql: string): Promise<QueryRows>;
  listen(channel: string, heard: (payload: string) => void): Promise<void>;
  /** Resolves when the connection is gone, for whatever reason. */
  readonly gone: Promise<void>;
  readonly isGone: boolean;
  /** At once, whatever is under way. */
  drop(): void;
  close(): Promise<void>;
}

export interface QueryRows {
  readonly rows: readonly Row[];
  /** What the server says it did: a COMMIT may be answered with ROLLBACK. */
  readonly command: string;
}

export async function connect({ address, purpose, settings = {} }: LinkOptions): Promise<Link> {
  const { default: pg } = await import("pg");
  const given = { search_path: address.schema, ...settings };
  const config: ClientConfig & { readonly pipeline: boolean } = {
    connectionString: address.url,
    application_name: `heddle ${purpose}`,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    options: Object.entries(given)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
    types: { getTypeParser: (oid: number) => parserOf(oid) },
    pipeline: true,
  };
  const client = new pg.Client(config);
  const { promise: gone, resolve: isLost } = Promise.withResolvers<void>();
  let isGone = false;
  const lose = (): void => {
    isGone = true;
    isLost();
  };
  // Every statement that was under way is told by itself.
  client.on("error", lose);
  client.on("end", lose);
  await client.connect();
  return linkOf(client, { gone, lose, isGone: () => isGone, types: pg.types });
}

interface Life {
  readonly gone: Promise<void>;
  readonly lose: () => void;
  readonly isGone: () => boolean;
  /** As others expect them. */
  readonly types: CustomTypesConfig;
}

function linkOf(client: Client, { gone, lose, isGone, types }: Life): Link {
  return {
    gone,
    get isGone() {
      return isGone();
    },
    async send({ sql, values }) {
      const { text, name } = prepared(sql);
      return answerOf(await client.query({ text, name, values: [...values] }));
    },
    async query(text, values) {
      return answerOf(await client.query({ text, values: [...values], types }));
    },
    async exec(sql) {
      const answers: QueryResult | QueryResult[] = await client.query(sql);
      return answerOf(Array.isArray(answers) ? answers.at(-1) : answers);
    },
    async listen(channel, heard) {
      client.on("notification", ({ payload }) => heard(payload ?? ""));
      await client.query(`LISTEN ${channel}`);
    },
    drop() {
      lose();
      streamOf(client).destroy();
    },
    async close() {
      if (isGone()) return;
      await client.end();
    },
  };
}

/** The driver has no call that ends a connection at once. */
function streamOf(client: Client): { destroy(): void } {
  const { connection } = client as unknown as { readonly connection: { readonly stream: { destroy(): void } } };
  return connection.stream;
}

function answerOf(result: QueryResult | undefined): QueryRows {
  return { rows: result?.rows ?? [], command: result?.command ?? "" };
}

interface Prepared {
  readonly text: string;
  readonly name: string;
}

/** A list of values may be in the text of a statement: of such there are many, and they are not prepared. */
const MAX_PREPARED = 500;
const known = new Map<string, Prepared>();

/** Parameters as Postgres writes them; statements that come again are parsed once for each connection. */
function prepared(sql: string): Prepared {
  const found = known.get(sql);
  if (found !== undefined) return found;
  let count = 0;
  const text = sql.replaceAll(/\?(\d*)/g, (_, number: string) => `$${number === "" ? (count += 1) : number}`);
  const made = { text, name: known.size < MAX_PREPARED ? `h${known.size}` : "" };
  if (made.name !== "") known.set(sql, made);
  return made;
}

const INT8 = 20;
const INT4 = 23;
const INT2 = 21;
const FLOAT4 = 700;
const FLOAT8 = 701;
const NUMERIC = 1700;
const NUMBERS: ReadonlySet<number> = new Set([INT8, INT4, INT2, FLOAT4, FLOAT8, NUMERIC]);

/** Numbers as numbers: no column of the journal holds one that JavaScript cannot. Everything else as its text. */
function parserOf(oid: number): (value: string) => unknown {
  return NUMBERS.has(oid) ? Number : (value) => value;
}
