/**
 * A conversation of an agent program as a thread here: what was said and done there becomes items on record, marked as imported.
 * The record of the program is only read. The same again imports what came after, or nothing; each part is stored whole or not at
 * all, so that an import that was killed goes on where it was.
 */
import type { Journal } from "@heddle/journal";
import {
  addUsage,
  HeddleError,
  isHeddleError,
  NO_USAGE,
  visibleLine,
  type By,
  type EventBody,
  type EventOf,
  type Item,
  type Usage,
} from "@heddle/protocol";
import { requireOwnFolder } from "@heddle/tools";
import { realpath } from "node:fs/promises";
import { z } from "zod";
import { createThread } from "../../threads/create-thread.ts";
import { userMessage } from "../notes.ts";
import type { RunnerEvent } from "../runner.ts";
import { findConversation, originOf, type Conversation, type Keeping, type Programs } from "./conversations.ts";
import { fittedItem, isTooDeep } from "./fitted-item.ts";
import { hashedLines, type HashedLine } from "./hashed-lines.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";
import { createItemLog } from "./item-log.ts";
import { RECORD_READERS } from "./record-readers.ts";
import { programOf } from "./find-program.ts";
import { Told } from "./told-conversation.ts";

/** Of one import; the next one goes on after it. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_ITEMS = 5000;
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Of one append, which is held in memory. */
const PART_ITEMS = 500;
const PART_CHARS = 4 * 1024 * 1024;
/** Different kinds of lines; a program that makes them up must not fill the record. */
const MAX_KINDS = 50;
/** Imports of one conversation at the same time, and threads of it that were deleted. */
const MAX_TRIES = 50;

export interface ImportedThread {
  readonly threadId: string;
  readonly from: string;
  readonly handle: string;
  /** Stored by this import; 0: it was on record already. */
  readonly items: number;
  /** Why there is more than was read; absent: there is no more. */
  readonly left?: string | undefined;
}

interface Importing extends Programs, By {
  readonly journal: Journal;
  /** Absent: of every program. */
  readonly from?: string | undefined;
  readonly handle: string;
  /** For a conversation that does not say in which folder it was. */
  readonly folder: string;
}

export async function importConversation({ from, handle, ...given }: Importing): Promise<ImportedThread> {
  const { conversation, keeping } = await findConversation(given, { from, handle });
  const { record } = programOf(conversation.from, given.runners[conversation.from] ?? {}, given.env);
  if (record === undefined) throw new HeddleError("internal", `there is no reader for ${conversation.from}`);
  const reader = RECORD_READERS[record];
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const threadId = await threadFor(conversation, given);
    try {
      return await new Import({ ...given, conversation, keeping, threadId, reader }).run();
    } catch (error) {
      // Another import of it, or another change of the thread: what is stored by now is not read again.
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
  throw new HeddleError("store.busy", `${conversation.handle} is being imported by another process; try again`);
}

type OpenReader = (turn: ImportingTurn) => RecordReader;

/** The one of this conversation, or a new one where that was deleted. */
async function threadFor(
  { from, handle, folder, title }: Conversation,
  { journal, by, folder: otherwise }: Pick<Importing, "journal" | "folder" | "by">,
): Promise<string> {
  const workspace = await usableFolder(folder).catch(() => otherwise);
  const thread = { workspace, origin: originOf({ from, handle }), ...(title === undefined ? {} : { title }) };
  for (let deleted = 0; deleted < MAX_TRIES; deleted += 1) {
    const threadId = await createThread(journal, thread, { by, clientId: String(deleted), request: handle }).catch(
      (error: unknown) => {
        if (isHeddleError(error) && error.code === "store.id-conflict") return undefined;
        throw error;
      },
    );
    if (threadId !== undefined) return threadId;
  }
  throw new HeddleError("store.id-conflict", `${handle} was imported and deleted ${MAX_TRIES} times`);
}

/** What a record says of its folder is only a claim: the thread goes on there, so it must be one where a turn may begin. */
async function usableFolder(folder = ""): Promise<string> {
  const real = await realpath(folder);
  if (real === "/" || real !== folder) throw new HeddleError("workspace.missing", `${folder} is no folder of work`);
  requireOwnFolder(real);
  return real;
}

interface ImportOf extends By {
  readonly journal: Journal;
  readonly conversation: Conversation;
  readonly keeping: Keeping;
  readonly threadId: string;
  readonly reader: OpenReader;
}

const Stamp = z.looseObject({ timestamp: z.union([z.string(), z.number()]).optional() });

class Import {
  readonly #of: ImportOf;
  #version = 0;
  #events: EventBody[] = [];
  #chars = 0;
  /** In `#events`, and by this import. */
  #items = 0;
  #total = 0;
  #lines = 0;
  #saidAt: number | undefined;
  #usage: Usage = NO_USAGE;
  #model: string | undefined;
  readonly #unknown = new Map<string, number>();
  readonly #told = new Told();

  constructor(of: ImportOf) {
    this.#of = of;
  }

  async run(): Promise<ImportedThread> {
    const { conversation, keeping, journal, threadId } = this.#of;
    this.#version = await journal.version(threadId);
    const [before] = (await journal.read({ stream: threadId, after: 0, types: ["thread.imported"] })).slice(-1);
    const last = before?.body.type === "thread.imported" ? before.body : undefined;
    await using record = await keeping.open(conversation);
    if (record === undefined) throw new HeddleError("thread.not-found", `${conversation.file} is gone`);
    const reading = this.#of.reader(this.#turn());
    let end: HashedLine | undefined;
    let left: string | undefined;
    let isKnown = last === undefined;
    for await (const line of hashedLines(record.bytes, MAX_LINE_BYTES)) {
      this.#lines += 1;
      if (!isKnown) {
        if (line.text !== undefined) reading.skipped?.(parsed(line.text));
        isKnown = isSame(line, last, conversation);
      } else {
        await this.#read(line, reading);
        end = line;
        if (this.#items >= PART_ITEMS || this.#chars >= PART_CHARS) await this.#store(line, undefined);
        left = this.#limitAt(line.end - (last?.bytes ?? 0));
        if (left !== undefined) break;
      }
    }
    if (!isKnown) throw rewritten(conversation);
    left ??= record.isGrowing?.() === true ? "its last answer has not ended" : undefined;
    await reading.finish();
    if (end !== undefined) await this.#store(end, left, this.#told.take());
    const { from, handle } = conversation;
    return { threadId, from, handle, items: this.#total, ...(left === undefined ? {} : { left }) };
  }

  #limitAt(bytes: number): string | undefined {
    if (this.#total >= MAX_ITEMS) return `only ${MAX_ITEMS} items are read at once; import it again for what follows`;
    return bytes >= MAX_BYTES
      ? `only ${MAX_BYTES} bytes are read at once; import it again for what follows`
      : undefined;
  }

  async #read({ text }: HashedLine, reading: RecordReader): Promise<void> {
    if (text === undefined) return this.#count("too long");
    if (text === "") return;
    if (isTooDeep(text)) return this.#count("too deep");
    let line: unknown;
    try {
      line = JSON.parse(text);
    } catch {
      return this.#count("text");
    }
    this.#saidAt = timeOf(Stamp.safeParse(line).data?.timestamp) ?? this.#saidAt;
    await reading.heard(line);
  }

  #count(kind: string): void {
    const name = this.#unknown.has(kind) || this.#unknown.size < MAX_KINDS ? kind.slice(0, 100) : "others";
    this.#unknown.set(name, (this.#unknown.get(name) ?? 0) + 1);
  }

  #turn(): ImportingTurn {
    const { conversation, threadId } = this.#of;
    const { signal } = new AbortController();
    const record = (events: readonly RunnerEvent[], said: "user" | "agent"): readonly EventBody[] => {
      for (const event of events) if (event.type === "item.completed") this.#add(event.item, said);
      return [];
    };
    return {
      workspace: conversation.folder ?? "/",
      items: createItemLog(threadId, {
        signal,
        stream: () => undefined,
        record: (events) => Promise.resolve(record(events, "agent")),
      }),
      unknown: (kind) => this.#count(kind),
      said: (text) => Promise.resolve(void record(userMessage(threadId, [{ type: "text", text }]), "user")),
      spent: ({ model, usage }) => {
        this.#model = model ?? this.#model;
        this.#usage = addUsage(this.#usage, usage);
        return Promise.resolve();
      },
    };
  }

  #add(whole: Item, said: "user" | "agent"): void {
    const { file } = this.#of.conversation;
    const item = fittedItem(whole);
    const at = this.#saidAt === undefined ? {} : { saidAt: this.#saidAt };
    this.#events.push({ type: "item.imported", v: 1, item, said, ...at, file, line: this.#lines });
    this.#items += 1;
    this.#total += 1;
    this.#chars += JSON.stringify(item).length;
    this.#told.add(item);
  }

  /** Everything up to the end of this line. */
  async #store(line: HashedLine, left: string | undefined, told: readonly EventBody[] = []): Promise<void> {
    const { conversation, journal, threadId: stream, by: author } = this.#of;
    const { from, handle, file } = conversation;
    const imported: EventOf<"thread.imported"> = {
      type: "thread.imported",
      v: 1,
      from,
      handle,
      file,
      bytes: line.end,
      lines: this.#lines,
      sha256: line.sha256(),
      items: this.#items,
      usage: this.#usage,
      ...(this.#model === undefined ? {} : { model: visibleLine(this.#model.slice(0, 200)) }),
      ...(this.#unknown.size === 0 ? {} : { unknown: Object.fromEntries(this.#unknown) }),
      ...(left === undefined ? {} : { left }),
    };
    const events = [...this.#events, ...told, imported];
    await journal.append({ stream, author, events, expectedVersion: this.#version });
    this.#version += events.length;
    this.#events = [];
    this.#chars = 0;
    this.#items = 0;
    this.#usage = NO_USAGE;
    this.#unknown.clear();
  }
}

function parsed(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** At the line where the last import ended: whether it ended there. */
function isSame(line: HashedLine, last: EventOf<"thread.imported"> | undefined, conversation: Conversation): boolean {
  if (last === undefined || line.end < last.bytes) return last === undefined;
  if (line.end === last.bytes && line.sha256() === last.sha256) return true;
  throw rewritten(conversation);
}

function rewritten({ file, handle }: Conversation): HeddleError {
  const message = `${file} does not begin any more with what was imported from it; to import it anew, delete its thread: heddle threads delete ID`;
  return new HeddleError("store.id-conflict", message, { details: { handle } });
}

/** The latest time that a Date can be. */
const MAX_TIME = 8.64e15;

function timeOf(stamp: string | number | undefined): number | undefined {
  const time = typeof stamp === "string" ? Date.parse(stamp) : stamp;
  return time !== undefined && Number.isFinite(time) && time > 0 && time <= MAX_TIME ? Math.trunc(time) : undefined;
}
