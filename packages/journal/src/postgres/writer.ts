/**
 * The one way to write to a journal on Postgres: a transaction on the connection that is kept for it. A write of which no
 * answer came is looked up by the id of its first event, under the lock, and never guessed.
 */
import { clockMs, HeddleError } from "@heddle/protocol";
import type { PostgresAddress } from "./address.ts";
import { connect, type Link } from "./driver.ts";
import { whileAway } from "./readers.ts";
import { faultOf, toStoreError } from "./store-errors.ts";
import { transact, UnknownOutcome, type Transaction } from "./transaction.ts";

/** Behind others; then the caller is told that the store is busy. */
const LOCK_MS = 15_000;
/** A writer that is cut off between lock and commit keeps the others waiting so long. */
const IDLE_MS = 3_000;
/** Longer than the wait for the lock. */
const ANSWER_MS = 20_000;

export interface Write<T> {
  readonly work: (transaction: Transaction) => Promise<T>;
  /** The id of an event that is there if this was stored; undefined: it may be done again as it is. */
  readonly mark: (done: T) => string | undefined;
}

export interface WriterOptions {
  readonly address: PostgresAddress;
  readonly lock: string;
  /** How long a server that is away is waited for. */
  readonly patienceMs: number;
  readonly answerMs?: number | undefined;
  readonly lockMs?: number | undefined;
}

export interface Writer {
  write<T>(write: Write<T>): Promise<T>;
  /** Outside of any transaction. */
  exec(sql: string): Promise<void>;
  close(): Promise<void>;
}

export function createWriter({
  address,
  lock,
  patienceMs,
  answerMs = ANSWER_MS,
  lockMs = LOCK_MS,
}: WriterOptions): Writer {
  let link: Link | undefined;
  const timing = { lock, answerMs };

  async function connected(): Promise<Link> {
    if (link !== undefined && !link.isGone) return link;
    link = undefined;
    const settings = { lock_timeout: lockMs, idle_in_transaction_session_timeout: IDLE_MS };
    link = await connect({ address, purpose: "append", settings });
    return link;
  }

  /** Once the lock is had, whoever had it before has committed or never will. */
  async function landed(id: string): Promise<boolean> {
    const sql = "SELECT 1 FROM events WHERE id = ?";
    return await transact(await connected(), timing, async ({ look }) => {
      const [found = []] = await look([{ sql, values: [id] }]);
      return found.length > 0;
    });
  }

  async function settle<T>({ mark }: Write<T>, outcome: UnknownOutcome): Promise<T | typeof NOT_STORED> {
    const done = outcome.done as T;
    const id = mark(done);
    if (id === undefined) return NOT_STORED;
    try {
      return (await whileAway(patienceMs, () => landed(id))) ? done : NOT_STORED;
    } catch (error) {
      throw unknownError(address, error);
    }
  }

  return {
    async write(write) {
      const deadline = clockMs() + patienceMs;
      for (;;) {
        try {
          const leftMs = Math.max(0, deadline - clockMs());
          return await whileAway(leftMs, async () => transact(await connected(), timing, write.work));
        } catch (error) {
          if (!(error instanceof UnknownOutcome)) throw failed(error);
          const settled = await settle(write, error);
          if (settled !== NOT_STORED) return settled;
          if (clockMs() > deadline) throw toStoreError(error.cause, address.name);
        }
      }
    },
    async exec(sql) {
      const link = await connected();
      await link.exec(sql).catch((error: unknown) => {
        throw failed(error);
      });
    },
    async close() {
      await link?.close();
    },
  };

  function failed(error: unknown): HeddleError {
    if (faultOf(error) === "away") link?.drop();
    return toStoreError(error, address.name);
  }
}

const NOT_STORED = Symbol("not stored");

function unknownError({ name }: PostgresAddress, cause: unknown): HeddleError {
  const message = `${name} did not say whether an append was stored, and cannot be asked; look at the thread before you repeat it`;
  return new HeddleError("store.unknown", message, { cause });
}
