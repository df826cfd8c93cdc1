/**
 * A task that this worker has taken. Every append carries its lease and the version it knows: `task.stale` when the task
 * was paused or cancelled, `lease.lost` when another worker has it. `lost` aborts with the reason.
 */
import {
  HeddleError,
  isHeddleError,
  isTaskEvent,
  leaseLost,
  type ErrorCode,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import { thisHolder } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { appendTo } from "../queue/change.ts";
import { leaseOf } from "../queue/take.ts";
import type { Feed } from "../queue/feed.ts";

export interface Hold extends AsyncDisposable {
  readonly task: TaskRecord;
  readonly lost: AbortSignal;
  /** All of them or none. `task.stale`, `lease.lost`: the task is no longer this worker's. */
  append(...events: readonly TaskEventBody[]): Promise<TaskRecord>;
  /** The cost of a turn that went on after the task was lost. */
  account(ended: TaskEventBody): Promise<void>;
}

const MAX_TRIES = 50;

export function hold(journal: Journal, feed: Feed, taken: TaskRecord): Hold {
  const { id, attempt } = taken;
  const lease = journal.leases.hold(leaseOf(taken), thisHolder());
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
    if (found !== undefined && found.attempt !== attempt) return leaseLost(lease, found.attempt);
    const what = found === undefined ? "deleted" : (found.reason ?? found.state);
    return new HeddleError("task.stale", `${id} no longer belongs to this worker: ${what}`);
  }

  async function watch(): Promise<void> {
    for await (const { body } of feed.follow(id, { after: taken.version, signal: closed.signal })) {
      if (isTaskEvent(body) && MAY_TAKE_AWAY.has(body.type)) await refresh();
      if (lost.signal.aborted) return;
    }
  }

  // The task says why. A read that fails is noticed by the next append.
  const onTaken = (): void => void refresh().catch(() => undefined);
  lease.lost.addEventListener("abort", onTaken, { once: true });
  // A read that fails is noticed by the next append.
  const watching = watch().catch(() => undefined);
  return {
    get task() {
      return task;
    },
    lost: lost.signal,
    async append(...events) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        lost.signal.throwIfAborted();
        const next = await appendTo(journal, task, { author: "system", events, lease: leaseOf(taken) }).catch(
          unlessLost,
        );
        if (next !== undefined) {
          task = next;
          return next;
        }
        await refresh();
      }
      throw new HeddleError("store.busy", `task ${id} is being changed by another process`);
    },
    async account(ended) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const found = await journal.tasks.get(id);
        if (found?.attempt !== attempt || found.openPrompt === undefined || found.state === "archived") return;
        if ((await appendTo(journal, found, { author: "system", events: [ended] })) !== undefined) return;
      }
    },
    async [Symbol.asyncDispose]() {
      lease[Symbol.dispose]();
      closed.abort();
      await watching;
    },
  };
}

export function isTaken({ lost: { reason } }: Pick<Hold, "lost">): boolean {
  return isHeddleError(reason) && reason.code === "lease.lost";
}

/** The task is no longer this worker's, or has changed: the event is out of date. */
export function isOutdated(error: unknown): boolean {
  return isHeddleError(error) && OUTDATED.has(error.code);
}

const OUTDATED: ReadonlySet<string> = new Set<ErrorCode>(["task.stale", "task.illegal", "lease.lost"]);

/** Refused because of the lease: the task says why. */
function unlessLost(error: unknown): undefined {
  if (!isHeddleError(error) || error.code !== "lease.lost") throw error;
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
