/**
 * What matters to an operator, as it happens: turns and tasks of this process, refused clients, a store that refuses, slow
 * appends. Ids, states, codes and times; never what a user, a model or a command said. Read from the journal and from what
 * is timed, so that no code of a turn or a door knows of logs.
 */
import { thisHolder } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { canonical, reasonOf, type Holder, type StoredEvent } from "@heddle/protocol";
import { APPENDS, REFUSALS } from "@heddle/protocol/measure";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogEntry {
  readonly level: LogLevel;
  /** The name of an event of the journal, or of what is not recorded. */
  readonly event: string;
  readonly fields: Readonly<Record<string, string | number | undefined>>;
}

export interface LogFactsOptions {
  readonly journal: Journal;
  readonly write: (entry: LogEntry) => void;
}

/** Longer than this for one append is a disk or a lock to look at. */
const SLOW_APPEND_MS = 1_000;

export async function followFacts({ journal, write }: LogFactsOptions): Promise<AsyncDisposable> {
  const told = createTold(thisHolder());
  const closing = new AbortController();
  let seen = await journal.position();
  const following = (async () => {
    for await (const event of journal.tail({ after: seen, signal: closing.signal })) {
      const entry = told(event);
      if (entry !== undefined) write(entry);
      seen = event.position;
    }
  })().catch((error: unknown) => {
    if (closing.signal.aborted) return;
    write({ level: "error", event: "log.ended", fields: { message: `cannot follow the record: ${reasonOf(error)}` } });
  });
  const measuring = new DisposableStack();
  measuring.use(
    APPENDS.listen(({ of, stream, ms, outcome }) => {
      if (of !== journal) return;
      const fields = { stream, ms: Math.round(ms), ...(outcome === "ok" ? {} : { code: outcome }) };
      if (outcome === "lease.lost") write({ level: "warn", event: "lease.lost", fields });
      else if (outcome.startsWith("store.")) write({ level: "error", event: "store.refused", fields });
      else if (ms > SLOW_APPEND_MS) write({ level: "warn", event: "append.slow", fields });
    }),
  );
  measuring.use(REFUSALS.listen((refused) => write({ level: "warn", event: "login.refused", fields: { ...refused } })));
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      measuring.dispose();
      await following;
    },
  };
}

/** Of the turns and tasks that this process has; others tell of theirs. */
function createTold(self: Holder): (event: StoredEvent) => LogEntry | undefined {
  const own = canonical(self);
  const turns = new Set<string>();
  const tasks = new Set<string>();
  return ({ stream, body }) => {
    switch (body.type) {
      case "turn.admitted":
      case "turn.resumed":
        if (canonical(body.holder) !== own) return undefined;
        turns.add(body.turnId);
        return { level: "info", event: body.type, fields: { threadId: stream, turnId: body.turnId } };
      case "turn.completed": {
        if (!turns.delete(body.turnId)) return undefined;
        const { turnId, status, durationMs, failure, costUsd } = body;
        const fields = { threadId: stream, turnId, status, code: failure?.code, ms: Math.round(durationMs), costUsd };
        return { level: status === "failed" ? "warn" : "info", event: body.type, fields };
      }
      case "model.retried": {
        if (!turns.has(body.turnId)) return undefined;
        const fields = { threadId: stream, turnId: body.turnId, code: body.cause.code, attempt: body.attempt };
        return { level: "warn", event: body.type, fields };
      }
      case "approval.requested":
        if (!turns.has(body.turnId)) return undefined;
        return { level: "info", event: body.type, fields: { threadId: stream, turnId: body.turnId } };
      case "task.taken":
        if (canonical(body.holder) !== own) return undefined;
        tasks.add(stream);
        return { level: "info", event: body.type, fields: { taskId: stream, attempt: body.attempt } };
      default:
        return tasks.has(stream) ? ofTask(stream, body, tasks) : undefined;
    }
  };
}

function ofTask(taskId: string, body: StoredEvent["body"], tasks: Set<string>): LogEntry | undefined {
  switch (body.type) {
    case "task.verified":
    case "task.cancelled":
      tasks.delete(taskId);
      return { level: "info", event: body.type, fields: { taskId } };
    case "task.failed":
      tasks.delete(taskId);
      return { level: "error", event: body.type, fields: { taskId, code: body.failure.code, class: body.class } };
    case "task.retried":
      tasks.delete(taskId);
      return { level: "warn", event: body.type, fields: { taskId, code: body.failure?.code } };
    case "task.rejected":
      return { level: "info", event: body.type, fields: { taskId, failing: body.failing.length } };
    case "task.waited":
    case "task.paused":
      return { level: "info", event: body.type, fields: { taskId, cause: body.cause } };
    case "task.stalled":
      return { level: "warn", event: body.type, fields: { taskId, quietMs: body.quietMs } };
    case "task.claimed":
    case "task.resumed":
    case "task.prepared":
      return { level: "debug", event: body.type, fields: { taskId } };
    default:
      return undefined;
  }
}
