/**
 * The one place that knows pg-boss: a queue of tickets in the database of a shared store. Its calls take the connection
 * of a transaction as an option, and without it commit by themselves; here each call has one shape, so that none can
 * be written the wrong way.
 */
import { HeddleError, reasonOf } from "@heddle/protocol";
import type { InTransaction, TicketChange, TicketName, TicketWriter } from "@heddle/journal";
import type { PgBoss } from "pg-boss";

export interface TicketQueueOptions {
  /** `postgres://…`, the database of the store. */
  readonly url: string;
  /** Of the tickets, apart from that of the store. */
  readonly schema: string;
  readonly log: (line: string) => void;
  /** False: it only sends; others bring back what no worker took. */
  readonly isUpkeeper?: boolean;
  /** How long a worker may have a ticket before it takes the task; absent: half a minute. */
  readonly claimSeconds?: number;
}

export interface DeliveredTicket extends TicketName {
  readonly subject: string;
}

export interface TicketQueue extends TicketWriter, AsyncDisposable {
  /** The names of all queues that tickets were sent to. */
  names(): Promise<readonly string[]>;
  /** The best that are due, in no order; each is this process's until it is done or its time is over. */
  fetch(queue: string, limit: number): Promise<readonly DeliveredTicket[]>;
  /** In one transaction of its own. */
  change(changes: readonly TicketChange[]): Promise<void>;
  /** The subjects of tickets that wait in a queue. */
  waiting(queue: string): Promise<ReadonlySet<string>>;
  /** Tickets that were delivered too often, and are done with this. */
  dead(limit: number): Promise<readonly DeliveredTicket[]>;
}

/** Tickets wait as long as their tasks: a schedule of once a year is one. */
const TEN_YEARS_SECONDS = 315_360_000;
/** What is done is kept for a look at it. */
const KEPT_SECONDS = 3_600;
const CLAIM_SECONDS = 30;
/** Three workers in a row. */
const RETRIES = 2;
const DEAD = "dead";
/** For fetching and for the queue's own upkeep. */
const CONNECTIONS = 3;

export async function openTicketQueue(options: TicketQueueOptions): Promise<TicketQueue> {
  const { claimSeconds = CLAIM_SECONDS } = options;
  const boss = await startBoss(options);
  const made = new Map<string, Promise<void>>();

  /** Once a process; on a connection of its own, so that it is there whatever becomes of a transaction. */
  function ensure(queue: string): Promise<void> {
    let making = made.get(queue);
    if (making === undefined) {
      making = makeQueue(boss, queue, claimSeconds);
      made.set(queue, making);
      making.catch(() => made.delete(queue));
    }
    return making;
  }

  async function write(changes: readonly TicketChange[], run: InTransaction): Promise<void> {
    for (const { queue } of changes) await ensure(queue);
    for (const change of changes) await writeOne(boss, change, run);
  }

  await ensure(DEAD);
  return {
    write,
    async names() {
      return (await boss.getQueues()).map(({ name }) => name).filter((name) => name !== DEAD && !isInternal(name));
    },
    async fetch(queue, limit) {
      await ensure(queue);
      const jobs = await boss.fetch<{ readonly subject: string }>(queue, { batchSize: limit });
      return jobs.map(({ id, retryCount, data }) => ({ queue, ticket: `${id}/${retryCount}`, subject: data.subject }));
    },
    async change(changes) {
      for (const { queue } of changes) await ensure(queue);
      await inOneTransaction(boss, async (run) => {
        for (const change of changes) await writeOne(boss, change, run);
      });
    },
    async waiting(queue) {
      await ensure(queue);
      const jobs = await boss.findJobs<{ readonly subject: string }>(queue, { queued: true });
      return new Set(jobs.map(({ data }) => data.subject));
    },
    async dead(limit) {
      const jobs = await boss.fetch<{ readonly subject: string }>(DEAD, { batchSize: limit });
      return jobs.map(({ id, retryCount, data }) => ({
        queue: DEAD,
        ticket: `${id}/${retryCount}`,
        subject: data.subject,
      }));
    },
    async [Symbol.asyncDispose]() {
      await boss.stop({ graceful: false });
    },
  };
}

async function startBoss({ url, schema, log, isUpkeeper = true }: TicketQueueOptions): Promise<PgBoss> {
  const { PgBoss: Boss } = await import("pg-boss");
  const boss = new Boss({
    connectionString: url,
    schema,
    max: CONNECTIONS,
    application_name: "heddle tickets",
    // Times of schedules are events; this queue has none of its own.
    schedule: false,
    supervise: isUpkeeper,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    maintenanceIntervalSeconds: 60,
  });
  // Its upkeep; what it could not do it tries again, and the projection of tasks is the truth.
  boss.on("error", (error) => log(`the queue of tickets: ${reasonOf(error)}`));
  try {
    return await boss.start();
  } catch (cause) {
    throw new HeddleError("store.failed", `the queue of tickets cannot be opened: ${reasonOf(cause)}`, { cause });
  }
}

async function makeQueue(boss: PgBoss, queue: string, claimSeconds: number): Promise<void> {
  await boss.createQueue(queue, {
    // One waiting ticket for each task.
    policy: queue === DEAD ? "standard" : "short",
    retryLimit: RETRIES,
    expireInSeconds: claimSeconds,
    retentionSeconds: TEN_YEARS_SECONDS,
    deleteAfterSeconds: KEPT_SECONDS,
    ...(queue === DEAD ? {} : { deadLetter: DEAD }),
  });
}

async function writeOne(boss: PgBoss, change: TicketChange, run: InTransaction): Promise<void> {
  const db = { executeSql: async (sql: string, values: unknown[] = []) => run(sql, values) };
  if (change.kind === "done") {
    const [id = "", count = ""] = change.ticket.split("/");
    // Of this delivery only: a later one of the same ticket is another worker's.
    await boss.complete(change.queue, { id, retryCount: Number(count) }, null, { db });
    return;
  }
  const { queue, subject, notBefore, priority } = change;
  const times = { startAfter: new Date(notBefore), priority, singletonKey: subject };
  const sent = await boss.send(queue, { subject }, { ...times, db });
  if (sent !== null) return;
  // One waits already.
  await boss.update(queue, { subject }, { ...times, db });
}

async function inOneTransaction(boss: PgBoss, work: (run: InTransaction) => Promise<void>): Promise<void> {
  const transaction = await boss.getDb().beginTransaction?.();
  if (transaction === undefined) throw new HeddleError("internal", "the queue of tickets has no transactions");
  try {
    await work((sql, values) => transaction.db.executeSql(sql, [...values]));
    await transaction.commit();
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}

/** pg-boss keeps queues of its own. */
function isInternal(name: string): boolean {
  return name.startsWith("__");
}
