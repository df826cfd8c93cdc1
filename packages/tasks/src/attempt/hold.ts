/**
 * A task that this worker has taken. Everything it says goes through `append`, on the version it knows; when the task was
 * paused, cancelled or taken over meanwhile that is `task.stale`, and `lost` aborts with the reason.
 */
import { HeddleError, isTaskEvent, type StoredEvent, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { appendTo } from "../queue/change.ts";
import type { Feed } from "../queue/feed.ts";

export interface Hold extends AsyncDisposable {
  /** As it stands. */
  readonly task: TaskRecord;
  /** Aborts when the task is no longer this worker's. */
  readonly lost: AbortSignal;
  /** Together or not at all. `task.stale`: it is not ours any more. */
  append(...events: readonly TaskEventBody[]): Promise<TaskRecord>;
  /** The cost of a turn that ran on after the task was lost. */
  account(ended: TaskEventBody): Promise<void>;
  log(): Promise<readonly StoredEvent<TaskEventBody>[]>;
}

const MAX_TRIES = 50;

export function hold(journal: Journal, feed: Feed, taken: TaskRecord): Hold {
  const { id, attempt } = taken;
  const lost = new AbortController();
  const closed = new AbortController();
  let task = taken;

  const isOurs = (found: TaskRecord | undefined): found is TaskRecord =>
    found?.attempt === attempt && found.holder !== undefined;

  async function refresh(): Promise<void> {
    const found = await journal.tasks.get(id);
    if (found !== undefined && found.version > task.version) task = found;
    if (!isOurs(found) && !closed.signal.aborted) lost.abort(stale(found));
  }

  function stale(found: TaskRecord | undefined): HeddleError {
    const what = found === undefined ? "deleted" : (found.reason ?? found.state);
    return new HeddleError("task.stale", `${id} is not this worker's any more: ${what}`);
  }

  async function watch(): Promise<void> {
    for await (const { body } of feed.follow(id, { after: taken.version, signal: closed.signal })) {
      if (isTaskEvent(body) && MAY_TAKE_AWAY.has(body.type)) await refresh();
      if (lost.signal.aborted) return;
    }
  }

  // A reading that fails meets the next append, which tells.
  const watching = watch().catch(() => undefined);
  return {
    get task() {
      return task;
    },
    lost: lost.signal,
    async append(...events) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        lost.signal.throwIfAborted();
        const next = await appendTo(journal, task, { author: "system", events });
        if (next !== undefined) {
          task = next;
          return next;
        }
        await refresh();
      }
      throw new HeddleError("store.busy", `task ${id} is written without pause`);
    },
    async account(ended) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const found = await journal.tasks.get(id);
        if (found?.attempt !== attempt || found.openPrompt === undefined || found.state === "archived") return;
        if ((await appendTo(journal, found, { author: "system", events: [ended] })) !== undefined) return;
      }
    },
    async log() {
      const events = await journal.read({ stream: id, after: 0 });
      return events.filter((event): event is StoredEvent<TaskEventBody> => isTaskEvent(event.body));
    },
    async [Symbol.asyncDispose]() {
      closed.abort();
      await watching;
    },
  };
}

const MAY_TAKE_AWAY: ReadonlySet<string> = new Set<TaskEventBody["type"]>([
  "task.paused",
  "task.cancelled",
  "task.claimed",
  "task.taken",
  "task.failed",
  "task.retried",
  "task.deleted",
]);
