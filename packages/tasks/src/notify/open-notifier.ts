/**
 * Notifies sinks of what happens to tasks. One reader of the journal queues notifications in the stream of each sink, and
 * a delivery per sink sends them. Nothing waits for either.
 *
 * - Once: the key of a queued notification is sink and position, so that reading an event again queues nothing.
 * - A sink continues where it was; a new one begins now.
 * - One process at a time does this for a home; others wait until it has ended.
 */
import path from "node:path";
import { claimStore } from "@heddle/agent";
import { readTakeover } from "@heddle/agent/takeover";
import type { Journal } from "@heddle/journal";
import { isHeddleError, isTaskEvent, reasonOf, type StoredEvent, type TaskEventBody } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { pause } from "../queue/feed.ts";
import { recentActivity } from "./activity.ts";
import { endSoon, openDelivery, type Delivery } from "./delivery.ts";
import { openReadMark, type ReadMark } from "./read-mark.ts";
import { notificationId, sinkStream, type Sink } from "./sink.ts";
import { foldTasks, type TaskFold } from "./task-fold.ts";
import { payloadOf, noticesOf } from "./notices.ts";

export interface NotifierOptions {
  readonly journal: Journal;
  readonly sinks: readonly Sink[];
  readonly home: string;
  /** How many of the agent's last messages go with a notification. */
  readonly recentMessages?: number;
  /** Of the dashboard, as users reach it; absent: notifications have no link. */
  readonly publicUrl?: string | undefined;
  readonly now?: () => number;
  /** After the first failure; each further one waits four times as long, up to ten minutes. */
  readonly firstWaitMs?: number;
  readonly log: (line: string) => void;
  /** Throws `store.owned` while another process notifies; absent: one process of this home does. */
  readonly claim?: (() => Promise<AsyncDisposable>) | undefined;
}

const DEFAULT_RECENT_MESSAGES = 3;
/** How often to check whether the process that notifies has ended, or the store can be read again. */
const LOOK_AGAIN_MS = 5_000;

/**
 * Notifies of what is stored after it is open, new sinks too. Closing it queues what is stored by then and tries to deliver
 * it for a moment; the rest is left to the next start.
 */
export async function openNotifier(options: NotifierOptions): Promise<AsyncDisposable> {
  for (const { name } of options.sinks) await openReadMark(options.journal, name);
  const ending = new AbortController();
  const cutting = new AbortController();
  for (const sink of options.sinks) options.journal.redactor.learn(sink.secrets);
  const end = { ending: ending.signal, cutting: cutting.signal };
  const ended = options.sinks.length === 0 ? Promise.resolve() : keepGoing(options, end);
  return { [Symbol.asyncDispose]: () => endSoon(ended, { ending, cutting }) };
}

interface End {
  /** What is stored is still queued. */
  readonly ending: AbortSignal;
  readonly cutting: AbortSignal;
}

async function keepGoing(options: NotifierOptions, end: End): Promise<void> {
  const claimHere = (): Promise<AsyncDisposable> =>
    claimStore(path.join(options.home, "notify"), "notifications of another Heddle");
  let lastLogged = "";
  while (!end.ending.aborted) {
    try {
      await using _claim = await (options.claim ?? claimHere)();
      await notify(options, end);
    } catch (error) {
      if (end.ending.aborted) return;
      const line = reasonOf(error);
      // Another process at work is not a failure, and no line is repeated.
      if (line !== lastLogged && !(isHeddleError(error) && error.code === "store.owned"))
        options.log(`notifications: ${line}`);
      lastLogged = line;
      await pause(LOOK_AGAIN_MS, end.ending);
    }
  }
}

async function notify(options: NotifierOptions, { ending, cutting }: End): Promise<void> {
  const { journal, sinks, log, now = Date.now } = options;
  await using deliveries = new AsyncDisposableStack();
  const readers: Reader[] = [];
  for (const sink of sinks) {
    const mark = await openReadMark(journal, sink.name);
    const delivery = deliveries.use(openDelivery({ journal, sink, now, log, firstWaitMs: options.firstWaitMs }));
    readers.push({ sink, delivery, mark });
  }
  const fold = foldTasks(journal);
  const read = (): number => Math.min(...readers.map(({ mark }) => mark.position));
  using last = readToTheEnd(journal, { ending, cutting, read });
  try {
    for await (const event of journal.tail({ after: read(), signal: last.signal })) {
      wakeRedelivered(readers, event);
      if (isTaskEvent(event.body)) await queueOrLog(options, readers, { ...event, body: event.body }, fold);
      for (const { mark } of readers) await mark.advance(event.position);
      last.look();
    }
  } finally {
    // The next start continues here; without it, more is read again.
    for (const { mark } of readers) await mark.store().catch(() => undefined);
  }
}

/** Aborts when everything that was stored at the end has been read. */
function readToTheEnd(
  journal: Journal,
  { ending, cutting, read }: End & { readonly read: () => number },
): Disposable & { readonly signal: AbortSignal; look(): void } {
  const over = new AbortController();
  let target: number | undefined;
  const look = (): void => {
    if (target !== undefined && read() >= target) over.abort();
  };
  const onEnd = (): void => {
    journal.position().then(
      (position) => {
        target = position;
        look();
      },
      () => over.abort(),
    );
  };
  if (ending.aborted) onEnd();
  else ending.addEventListener("abort", onEnd, { once: true });
  return {
    signal: AbortSignal.any([over.signal, cutting]),
    look,
    [Symbol.dispose]: () => ending.removeEventListener("abort", onEnd),
  };
}

interface Reader {
  readonly sink: Sink;
  readonly delivery: Delivery;
  /** Everything up to here is queued, or needs no notification. */
  readonly mark: ReadMark;
}

function wakeRedelivered(readers: readonly Reader[], { stream, body }: StoredEvent): void {
  if (body.type !== "notification.redelivered") return;
  readers.find(({ sink }) => sinkStream(sink.name) === stream)?.delivery.wake("redelivered");
}

/** An event that cannot be described is a defect, and must not hold up those behind it. */
async function queueOrLog(...[options, readers, event, fold]: Parameters<typeof queueNotices>): Promise<void> {
  try {
    await queueNotices(options, readers, event, fold);
  } catch (error) {
    if (isHeddleError(error)) throw error;
    options.log(`notifications: ${event.body.type} of ${event.stream} cannot be sent: ${reasonOf(error)}`);
  }
}

async function queueNotices(
  { journal, recentMessages = DEFAULT_RECENT_MESSAGES, publicUrl }: NotifierOptions,
  readers: readonly Reader[],
  event: StoredEvent<TaskEventBody>,
  fold: TaskFold,
): Promise<void> {
  const task = await fold(event);
  if (task === undefined) return;
  const route = task.spec.notify;
  const listening = readers.filter(
    ({ sink, mark }) => mark.position < event.position && (route === undefined || route.includes(sink.name)),
  );
  const notices = noticesOf(event.body, task).filter(({ name }) => listening.some(({ sink }) => sink.events.has(name)));
  if (notices.length === 0) return;
  const threadId = task.threadId ?? task.spec.thread;
  const activity = threadId === undefined ? [] : await recentActivity(journal, threadId, recentMessages);
  const takeover = threadId === undefined ? undefined : await readTakeover(journal, threadId);
  const url = publicUrl === undefined ? undefined : `${publicUrl.replace(/\/+$/, "")}/tasks/${task.id}`;
  for (const { sink, delivery } of listening) {
    const wanted = notices.filter(({ name }) => sink.events.has(name));
    if (wanted.length === 0) continue;
    const queued = wanted.map((one) => ({
      type: "notification.queued" as const,
      v: 1 as const,
      notificationId: notificationId(sink.name, one.name, event.position),
      sink: sink.name,
      event: one.name,
      position: event.position,
      payload: payloadOf(one, event, task, { activity, takeover, url }),
    }));
    await queueOnce(journal, sink.name, event.position, queued);
    failpoint("notify.after-queue");
    delivery.wake("queued");
  }
}

type Queued = Parameters<Journal["append"]>[0]["events"];

/** Relaxed durability loses nothing: after a power failure the event is read again. */
async function queueOnce(journal: Journal, sink: string, position: number, events: Queued): Promise<void> {
  try {
    const key = `notify:${sink}:${position}`;
    await journal.append({ stream: sinkStream(sink), author: "system", durability: "relaxed", events, key });
  } catch (error) {
    // It was queued before, with fewer messages of the agent.
    if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
  }
}
