/**
 * One write of the journal: everything under the lock of the journal, one at a time. Its first look-ups travel with the
 * lock, its statements with the commit, so a write takes two round trips.
 *
 *   begun ─▶ committing ─▶ committed
 *     └────▶ not stored      └────▶ unknown (no answer: it is looked up by `landed`)
 */
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Row } from "../record/rows.ts";
import type { InTransaction } from "../record/tickets.ts";
import type { Asking, Statement } from "../sql/ask.ts";
import type { Link } from "./driver.ts";

export interface Transaction {
  /** Each sees what was committed before the lock was had; they travel together. */
  readonly look: (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>;
  readonly ask: <T>(asking: Asking<T>) => Promise<T>;
  /** In the words of Postgres, parameters as `$1`; for what shares the transaction with the journal. */
  readonly run: InTransaction;
  /** Sent in this order, the first before the commit. */
  readonly write: (statements: readonly Statement[]) => void;
}

/** No answer came to the commit, or the connection went with it; `done` is what is true if it was stored. */
export class UnknownOutcome extends Error {
  override readonly name = "UnknownOutcome";
  readonly done: unknown;

  constructor(done: unknown, cause: unknown) {
    super("no answer to a commit", { cause });
    this.done = done;
  }
}

export interface TransactOptions {
  readonly lock: string;
  /** For all look-ups together, the wait for the lock included, and again for the writes. */
  readonly answerMs: number;
}

export async function transact<T>(
  link: Link,
  { lock, answerMs }: TransactOptions,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const writes: Statement[] = [];
  const begun = Promise.all([
    link.exec("BEGIN"),
    link.send({ sql: "SELECT pg_advisory_xact_lock(?::bigint)", values: [lock] }),
  ]);
  // Told by the first look.
  begun.catch(() => undefined);
  const look = async (statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> => {
    const answers = statements.map((statement) => link.send(statement));
    const [, found] = await within(link, answerMs, Promise.all([begun, Promise.all(answers)]));
    return found.map(({ rows }) => rows);
  };
  const transaction: Transaction = {
    look,
    async ask(asking) {
      let step = asking.next();
      while (step.done !== true) step = asking.next((await look([step.value]))[0] ?? []);
      return step.value;
    },
    run: async (sql, values) => ({ rows: [...(await within(link, answerMs, link.query(sql, values))).rows] }),
    write: (statements) => {
      for (const statement of statements) writes.push(statement);
    },
  };
  let done: T;
  try {
    done = await work(transaction);
  } catch (error) {
    await rollBack(link);
    throw error;
  }
  try {
    await commit(link, writes, answerMs);
  } catch (error) {
    throw error instanceof NoAnswer ? new UnknownOutcome(done, error.cause) : error;
  }
  return done;
}

class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

async function commit(link: Link, writes: readonly Statement[], answerMs: number): Promise<void> {
  if (writes.length > 0) failpoint("journal.append.before-insert");
  const answers = writes.map((statement) => link.send(statement));
  if (writes.length > 0) failpoint("journal.append.before-commit");
  const end = link.exec("COMMIT");
  let hasEnded = false;
  try {
    const [{ command }] = await within(link, answerMs, Promise.all([end, ...answers]));
    hasEnded = true;
    if (command !== "COMMIT") throw new HeddleError("internal", `a commit was answered with ${command}`);
  } catch (error) {
    // A refused statement says so before the commit is answered, which then is a rollback.
    const refused = await firstRefusal([...answers, end]);
    link.drop();
    if (hasEnded || refused !== undefined) throw refused ?? error;
    throw new NoAnswer("no answer to a commit", { cause: error });
  }
}

/** The server's own word that a statement failed; undefined: the connection went. */
async function firstRefusal(answers: readonly Promise<unknown>[]): Promise<unknown> {
  for (const result of await Promise.allSettled(answers))
    if (result.status === "rejected" && isOfServer(result.reason)) return result.reason;
  return undefined;
}

function isOfServer(error: unknown): boolean {
  return error instanceof Error && "severity" in error && error.severity === "ERROR";
}

/** Nothing was sent that could be stored: whatever comes of the rollback, it is gone. */
async function rollBack(link: Link): Promise<void> {
  if (link.isGone) return;
  await link.exec("ROLLBACK").catch(() => link.drop());
}

/** An answer that does not come is worth no more than a connection that is gone. */
async function within<T>(link: Link, ms: number, answers: Promise<T>): Promise<T> {
  // Everything that waits for an answer fails with the connection.
  const timer = setTimeout(() => link.drop(), ms);
  try {
    return await answers;
  } finally {
    clearTimeout(timer);
  }
}
