/**
 * What `GET /metrics` tells. It begins with the first question: until then nothing is counted and nothing loaded. What is
 * counted comes from the record as it grows; what stands now is asked of indexes that hold only what is open, so that a
 * question costs as much in a large store as in a small one.
 */
import { performance } from "node:perf_hooks";
import type { Heddle } from "@heddle/agent";
import { reasonOf, type TaskState } from "@heddle/protocol";
import { APPENDS, GROUPS, SANDBOXES, SPANS } from "@heddle/protocol/measure";
import { counter, expose, gauge, histogram, total, type Family } from "./families.ts";
import { countRecorded } from "./recorded.ts";

export interface MetricsOptions {
  readonly heddle: Heddle;
  readonly version: string;
  /** Who follows events, and who else is connected. */
  readonly followers: () => number;
  readonly isDraining: () => boolean;
  readonly log: (line: string) => void;
}

export interface Metrics extends Disposable {
  /** In the text format of Prometheus. */
  text(): Promise<string>;
}

const SECONDS = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128];
/** Tasks in other states have ended, and there is no end of them. */
const ACTIVE: readonly TaskState[] = ["pending", "running", "waiting", "paused", "stalled", "rejected"];
/** How often it is looked whether the one thread of the process is late. */
const BEAT_MS = 250;

export async function openMetrics(options: MetricsOptions): Promise<Metrics> {
  const { journal } = options.heddle;
  const counted = countMeasured(journal);
  const recorded = countRecorded();
  const closing = new AbortController();
  let seen = await journal.position();
  const follow = async (): Promise<void> => {
    for await (const event of journal.tail({ after: seen, signal: closing.signal })) {
      recorded.take(event);
      seen = event.position;
    }
  };
  follow().catch((error: unknown) => {
    if (!closing.signal.aborted) options.log(`cannot count what is stored any more: ${reasonOf(error)}`);
  });
  return {
    async text() {
      const standing = await standNow(options, seen);
      return expose([...standing, ...counted.families, ...recorded.families, ...ofProcess()]);
    },
    [Symbol.dispose]() {
      closing.abort();
      counted[Symbol.dispose]();
    },
  };
}

/** What is timed rather than recorded. */
function countMeasured(journal: object): Disposable & { readonly families: readonly Family[] } {
  const appends = histogram("heddle_append_seconds", "From an append to its commit", SECONDS);
  const groups = histogram("heddle_append_group_size", "Appends that were committed together", SIZES);
  const sandboxes = histogram("heddle_sandbox_open_seconds", "Opening a sandbox for a thread", SECONDS);
  const spans = counter("heddle_spans_total", "Spans of traces that the collector took, and those that were dropped");
  const late = histogram("heddle_event_loop_delay_seconds", "How late the event loop was, looked at often", SECONDS);
  const ends = new DisposableStack();
  ends.use(
    APPENDS.listen(({ of, ms, outcome }) => {
      if (of === journal) appends.observe({ outcome }, ms / 1_000);
    }),
  );
  ends.use(
    GROUPS.listen(({ of, appends: size }) => {
      if (of === journal) groups.observe({}, size);
    }),
  );
  ends.use(SANDBOXES.listen(({ ms, outcome }) => sandboxes.observe({ outcome }, ms / 1_000)));
  ends.use(SPANS.listen(({ outcome, count }) => spans.add({ outcome }, count)));
  let beatenAt = performance.now();
  const beating = setInterval(() => {
    const now = performance.now();
    late.observe({}, Math.max(0, now - beatenAt - BEAT_MS) / 1_000);
    beatenAt = now;
  }, BEAT_MS);
  beating.unref();
  ends.defer(() => clearInterval(beating));
  return { families: [appends, groups, sandboxes, spans, late], [Symbol.dispose]: () => ends.dispose() };
}

async function standNow(options: MetricsOptions, seen: number): Promise<readonly Family[]> {
  const { heddle, version, followers, isDraining } = options;
  const { journal } = heddle;
  const [refusal, position, open, approvals, queued, tasks, held] = await Promise.all([
    journal.refusal(),
    journal.position(),
    journal.threads.openTurns(),
    journal.threads.openApprovals(),
    journal.threads.queued(),
    journal.tasks.counts(ACTIVE),
    journal.tasks.held(),
  ]);
  const waiting = new Set(approvals.map(({ turnId }) => turnId));
  const isWaiting = open.filter(({ id }) => waiting.has(id)).length;
  const one = (name: string, help: string, value: number): Family => gauge(name, help, [[{}, value]]);
  return [
    gauge("heddle_build_info", "The version that runs", [[{ version }, 1]]),
    one("heddle_store_writable", "1: an append would be accepted now", refusal === undefined ? 1 : 0),
    one("heddle_store_damaged", "1: the record was changed or cut from outside", journal.damage === undefined ? 0 : 1),
    one("heddle_draining", "1: the server takes nothing new", isDraining() ? 1 : 0),
    one("heddle_tail_lag_events", "Stored events that this process has not read yet", Math.max(0, position - seen)),
    total("heddle_events_total", "Position of the newest event of the store", position),
    gauge("heddle_turns", "Turns that have not ended, and inputs that wait for theirs", [
      [{ state: "running" }, open.length - isWaiting],
      [{ state: "waiting" }, isWaiting],
      [{ state: "queued" }, queued.length],
    ]),
    gauge(
      "heddle_tasks",
      "Tasks that have not ended",
      ACTIVE.map((state) => [{ state }, tasks[state] ?? 0]),
    ),
    gauge("heddle_tickets", "The queue of tasks", [
      [{ queue: "tasks", state: "created" }, tasks.pending ?? 0],
      [{ queue: "tasks", state: "active" }, held.length],
    ]),
    one("heddle_approvals_open", "Questions without an answer", approvals.length),
    one("heddle_followers", "Clients that follow events", followers()),
    one("heddle_sandboxes", "Threads with an open sandbox in this process", heddle.openSandboxes()),
  ];
}

/** Under the names that every dashboard for programs knows. */
function ofProcess(): readonly Family[] {
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const cpu = counter("process_cpu_seconds_total", "Processor time of this process");
  cpu.add({ mode: "user" }, user / 1e6);
  cpu.add({ mode: "system" }, system / 1e6);
  return [
    cpu,
    gauge("process_resident_memory_bytes", "Memory of this process", [[{}, rss]]),
    gauge("nodejs_heap_size_used_bytes", "Of it, objects of the program", [[{}, heapUsed]]),
    gauge("nodejs_external_memory_bytes", "Of it, buffers", [[{}, external]]),
    gauge("process_start_time_seconds", "When it began", [[{}, performance.timeOrigin / 1_000]]),
    gauge("nodejs_eventloop_utilization", "How busy its one thread was since its start, 0 to 1", [
      [{}, performance.eventLoopUtilization().utilization],
    ]),
  ];
}
