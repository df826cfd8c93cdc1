/**
 * A folder as a queue of orders. Each becomes one task, in the order of arrival; its new name tells the outcome
 * (order-names.ts). The folder is watched, and scanned now and then in case a change was missed.
 *
 * Exactly once: an order is first renamed with an id of its own, and the task is added with that id as its key. A process
 * that finds such a name continues with the same id and gets the same task. The same text in a new file is a new order.
 */
import path from "node:path";
import { isHeddleError, isTaskEvent, reasonOf, uuidv7, type ErrorCode } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { openReadMark, type ReadMark } from "../notify/read-mark.ts";
import { pause } from "../queue/feed.ts";
import { codeOf } from "../tree/tree-errors.ts";
import { MAX_SPEC_BYTES } from "../spec/read-spec.ts";
import { inboxFolder, type FileEntry, type InboxFolder } from "./inbox-folder.ts";
import { createLooks, type Looks } from "./looks.ts";
import { ORDER_ENDINGS, readName, renamed, type Named } from "./order-names.ts";
import { answer, orderPathOf } from "./results.ts";
import { takeOrder, type OrderDoor } from "./take-order.ts";

export interface InboxOptions extends OrderDoor {
  readonly folder: string | InboxFolder;
  readonly settleMs?: number;
  /** How often the folder is scanned when no change was noticed. */
  readonly rescanMs?: number;
  /** When an order that failed through no fault of its own is tried again. */
  readonly tryAgainMs?: number;
  readonly log: (line: string) => void;
}

const DEFAULT_SETTLE_MS = 400;
const DEFAULT_RESCAN_MS = 10_000;
/** Changes of one moment are handled together. */
const GATHER_MS = 50;
const DEFAULT_TRY_AGAIN_MS = 5_000;
/** An empty file is about to be written; one that stays empty is a mistake. */
const EMPTY_MS = 30_000;
const MAX_DEPTH = 16;

export async function openInbox(options: InboxOptions): Promise<AsyncDisposable> {
  const folder = typeof options.folder === "string" ? inboxFolder(options.folder) : options.folder;
  folder.ensure();
  // Before the first order is taken, so that no end of a task is missed.
  const mark = await openReadMark(options.journal, `inbox:${folder.root}`);
  const ending = new AbortController();
  const inbox = { ...options, folder, signal: ending.signal, say: sayOnce(options.log, folder.root) };
  const ended = Promise.all([untilEnded(inbox, takeOrders), untilEnded(inbox, () => writeAnswers(inbox, mark))]);
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await ended;
    },
  };
}

interface Inbox extends InboxOptions {
  readonly folder: InboxFolder;
  readonly signal: AbortSignal;
  /** Does not repeat a line. */
  readonly say: (line: string) => void;
}

const MAX_LOGGED = 1_000;

function sayOnce(log: (line: string) => void, folder: string): (line: string) => void {
  const logged = new Set<string>();
  return (line) => {
    if (logged.has(line)) return;
    if (logged.size >= MAX_LOGGED) logged.clear();
    logged.add(line);
    log(`inbox ${folder}: ${line}`);
  };
}

/** Any failure, such as a full disk or missing rights, is reported once and tried again. */
async function untilEnded(inbox: Inbox, work: (inbox: Inbox) => Promise<void>): Promise<void> {
  while (!inbox.signal.aborted) {
    try {
      await work(inbox);
    } catch (error) {
      if (inbox.signal.aborted) return;
      inbox.say(reasonOf(error));
      await pause(inbox.tryAgainMs ?? DEFAULT_TRY_AGAIN_MS, inbox.signal);
    }
  }
}

async function takeOrders(inbox: Inbox): Promise<void> {
  const { folder, signal, settleMs = DEFAULT_SETTLE_MS, rescanMs = DEFAULT_RESCAN_MS } = inbox;
  const looks = createLooks(settleMs);
  using watched = watchFolders(folder);
  while (!signal.aborted) {
    if (folder.ensure()) {
      inbox.log(`inbox ${folder.root} was missing and is created again`);
      watched.forget();
    }
    const mark = watched.changes();
    const found = await scan(folder);
    watched.follow(found.folders);
    for (const entry of looks.look(found.files)) {
      if (signal.aborted) return;
      await take(inbox, entry, looks);
    }
    const next = looks.nextLook();
    const waitMs = next === undefined ? rescanMs : Math.min(rescanMs, Math.max(GATHER_MS, next - performance.now()));
    await watched.changeAfter(mark, waitMs, signal);
  }
}

interface Scanned {
  readonly folders: readonly FileEntry[];
  readonly files: readonly FileEntry[];
}

async function scan(inbox: InboxFolder): Promise<Scanned> {
  const folders: FileEntry[] = [];
  const files: FileEntry[] = [];
  const skips = (name: string): boolean => readName(name).kind === "ours";
  const walk = async (folder: string, depth: number): Promise<void> => {
    for (const entry of await inbox.ls(folder, skips)) {
      // Orders that another process took and did not finish come first.
      if (entry.kind !== "folder") files.push(isTaken(entry) ? { ...entry, arrivedAt: 0 } : entry);
      else if (depth < MAX_DEPTH && !path.posix.basename(entry.path).startsWith(".")) {
        folders.push(entry);
        await walk(entry.path, depth + 1);
      }
    }
  };
  await walk("", 0);
  return { folders, files };
}

function isTaken(entry: FileEntry): boolean {
  return readName(path.posix.basename(entry.path)).kind === "taken";
}

/** Takes a settled file: it gets a new name, or is looked at again later. */
async function take(inbox: Inbox, entry: FileEntry, looks: Looks): Promise<void> {
  const { tryAgainMs = DEFAULT_TRY_AGAIN_MS } = inbox;
  const named = readName(path.posix.basename(entry.path));
  const order = named.kind === "taken" ? path.posix.join(path.posix.dirname(entry.path), named.original) : entry.path;
  let at = entry.path;
  try {
    const reason = refusalOf(entry, named);
    if (reason !== undefined) return await refuse(inbox, at, order, reason);
    if (entry.sizeBytes === 0 && Date.now() - entry.modifiedAt < EMPTY_MS) return looks.putOff(at, tryAgainMs);
    const orderId = named.kind === "taken" ? named.orderId : uuidv7();
    if (named.kind !== "taken") {
      const moved = await inbox.folder.move(at, renamed(order, "taking", orderId));
      if (moved === undefined) return;
      at = moved;
      failpoint("inbox.after-claim");
    }
    await admit(inbox, { taken: at, order, orderId, entry });
  } catch (error) {
    // No other order can be taken either, and their order must hold.
    if (isOfStore(error)) throw error;
    looks.putOff(at, tryAgainMs);
    inbox.say(`${order} waits: ${reasonOf(error)}`);
  }
}

function refusalOf(entry: FileEntry, { kind }: Named): Reason | undefined {
  if (entry.kind === "other") return NOT_A_FILE;
  if (kind === "unknown-ending") return UNKNOWN_ENDING;
  return entry.sizeBytes > MAX_SPEC_BYTES ? TOO_LARGE : undefined;
}

interface Taken {
  /** Its path now; `order` is the original one. */
  readonly taken: string;
  readonly order: string;
  readonly orderId: string;
  readonly entry: FileEntry;
}

async function admit(inbox: Inbox, { taken, order, orderId, entry }: Taken): Promise<void> {
  const { folder } = inbox;
  const read = await folder.download(taken, MAX_SPEC_BYTES);
  if (read === undefined) return;
  // The writer still has it open under its new name: it is looked at again there.
  if (read.modifiedAt !== entry.modifiedAt) return;
  try {
    const { task } = await takeOrder(inbox, {
      file: path.posix.basename(order),
      text: read.bytes,
      path: path.join(folder.root, order),
      // The time before it was moved.
      ...(entry.changedAt === undefined ? {} : { changedAt: entry.changedAt }),
      source: { kind: "inbox", ref: path.join(folder.root, order) },
      key: `inbox:${orderId}`,
    });
    failpoint("inbox.after-add");
    await folder.move(taken, renamed(order, "processed", task.id));
  } catch (error) {
    if (isPassing(error)) throw error;
    await refuse(inbox, taken, order, asReason(error));
  }
}

/** A fault of the store or the file system that may pass, not of the order. */
function isPassing(error: unknown): boolean {
  return isHeddleError(error) ? isOfStore(error) : codeOf(error) !== undefined;
}

function isOfStore(error: unknown): boolean {
  return isHeddleError(error) && error.code !== "store.id-conflict" && error.code.startsWith("store.");
}

interface Reason {
  readonly why: string;
  readonly text: string;
}

const NOT_A_FILE: Reason = {
  why: "not-a-file",
  text: "It is a link, a pipe or a device. An order is a file of its own; copy it here.",
};
const UNKNOWN_ENDING: Reason = {
  why: "unknown-kind",
  text: `An order ends in one of ${ORDER_ENDINGS.join(", ")}. Save it as Markdown, text, YAML, JSON or docx.`,
};
const TOO_LARGE: Reason = {
  why: "too-large",
  text: `It is over ${MAX_SPEC_BYTES / 1024 / 1024} MiB. Write the goal, and put what belongs to it into the workspace.`,
};

/** The order itself is wrong, or refused by policy. */
const PARSE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["task.invalid", "policy.denied"]);

function asReason(error: unknown): Reason {
  const text = reasonOf(error);
  const isParse = isHeddleError(error) && PARSE_CODES.has(error.code);
  return { why: isParse ? "parse-failed" : "dispatch-raised", text };
}

async function refuse({ folder, log }: Inbox, from: string, order: string, { why, text }: Reason): Promise<void> {
  const now = await folder.move(from, renamed(order, "error", why));
  if (now === undefined) return;
  const name = path.posix.basename(order);
  const help = `\n\nFix it and put it here again as ${name}.\n`;
  await folder.upload(`${now}.reason.txt`, `${name} did not become a task.\n\n${text}${help}`);
  log(`inbox ${folder.root}: ${order} did not become a task (${why}): ${text.split("\n", 1)[0] ?? ""}`);
}

/** Follows the tasks of this inbox from where it was last read, and writes their answers. */
async function writeAnswers({ journal, folder, signal }: Inbox, mark: ReadMark): Promise<void> {
  try {
    for await (const event of journal.tail({ after: mark.position, signal })) {
      const task = isTaskEvent(event.body) ? await journal.tasks.get(event.stream) : undefined;
      let isAnswered = false;
      if (task !== undefined && isTaskEvent(event.body) && orderPathOf(task, folder.root) !== undefined) {
        isAnswered = await answer(folder, task, { ...event, body: event.body });
      }
      await mark.advance(event.position);
      // An answer is not written again after a restart: its reader may have taken it away.
      if (isAnswered) await mark.store();
    }
  } finally {
    await mark.store().catch(() => undefined);
  }
}

function watchFolders(inbox: InboxFolder) {
  let count = 0;
  let wake = (): void => undefined;
  let watching: Disposable | undefined;
  let followed: string | undefined;
  const onChange = (): void => {
    count += 1;
    wake();
  };
  const stop = (): void => {
    watching?.[Symbol.dispose]();
    watching = undefined;
    followed = undefined;
  };
  return {
    /** Read before scanning and passed to `changeAfter`, so that no change in between is missed. */
    changes: (): number => count,
    async changeAfter(mark: number, ms: number, signal: AbortSignal): Promise<void> {
      if (mark === count) {
        const waking = new AbortController();
        wake = () => waking.abort();
        await pause(ms, AbortSignal.any([signal, waking.signal]));
      }
      await pause(GATHER_MS, signal);
    },
    follow(folders: readonly FileEntry[]): void {
      const wanted = folders.map(({ path: at, identity }) => `${at}\n${identity}`).join("\n");
      if (wanted === followed) return;
      stop();
      watching = inbox.watch(["", ...folders.map(({ path: at }) => at)], onChange);
      followed = wanted;
      // Scans once more for what came while nothing was watched.
      count += 1;
    },
    forget: stop,
    [Symbol.dispose]: stop,
  };
}
