/**
 * Where OpenCode keeps its conversations: a database, and before that a file for each message and part. Of a database a copy is
 * read, so that nothing is written beside it while OpenCode has it open. A message becomes one line of JSON with what means
 * something here, the same for both and the same again later.
 */
import { createWriteStream } from "node:fs";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pipeline } from "node:stream/promises";
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import { titleOf } from "./conversation-files.ts";
import type { Conversation, Keeping, Kept, OpenRecord, Wanted } from "./conversations.ts";
import type { AgentProgram } from "./find-program.ts";
import { OpenCodePart } from "./opencode-items.ts";
import { UserPart } from "./opencode-record.ts";
import { openRecordFile } from "./record-file.ts";

const DATABASE = "opencode.db";
const STORAGE = "storage";
/** Years of work; a larger one is not copied. */
const MAX_DATABASE_BYTES = 2 * 1024 * 1024 * 1024;
/** Of one message or part. */
const MAX_JSON_BYTES = 4 * 1024 * 1024;
const MAX_FILES = 100_000;

const ID = /^[\w-]{1,200}$/;

const Info = z.looseObject({
  role: z.enum(["user", "assistant"]),
  time: z.looseObject({ created: z.number().optional(), completed: z.number().optional() }).optional(),
  modelID: z.string().optional(),
});
type Info = z.infer<typeof Info>;
const Session = z.looseObject({
  id: z.string(),
  directory: z.string().optional(),
  title: z.string().optional(),
  time: z.looseObject({ updated: z.number().optional() }).optional(),
});

export const OPENCODE: Keeping = {
  async list(program, wanted) {
    const found = await Promise.all([listDatabase(program, wanted), listFiles(program, wanted)]);
    // Old conversations were copied into the database, and their files stayed.
    const all = new Map(
      found
        .flatMap(({ conversations }) => conversations)
        .toReversed()
        .map((one) => [one.handle, one]),
    );
    const newest = [...all.values()].toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, wanted.limit);
    return { conversations: newest, total: Math.max(all.size, ...found.map(({ total }) => total)) };
  },
  open: (conversation) =>
    path.basename(conversation.file) === DATABASE ? openInDatabase(conversation) : openInFiles(conversation),
};

/** The folder of its data is the second of its folders. */
function dataFolder({ folders }: AgentProgram): string {
  return folders.find((folder) => folder.includes("share")) ?? folders[1] ?? folders[0] ?? "";
}

async function listDatabase(program: AgentProgram, { limit, handle = "" }: Wanted): Promise<Kept> {
  const folder = await realpath(dataFolder(program)).catch(() => undefined);
  const file = folder === undefined ? undefined : path.join(folder, DATABASE);
  await using copy = file === undefined ? undefined : await copyOf(file);
  if (copy === undefined || file === undefined) return { conversations: [], total: 0 };
  const where = "FROM session WHERE parent_id IS NULL AND substr(id, 1, ?) = ?";
  const rows = copy.database
    .prepare(
      `SELECT id, directory, substr(title, 1, 1000) AS title, time_updated ${where} ORDER BY time_updated DESC LIMIT ?`,
    )
    .all(handle.length, handle, limit);
  const counted = copy.database.prepare(`SELECT count(*) AS n ${where}`).get(handle.length, handle);
  const conversations = rows.flatMap((row): Conversation[] => {
    const id = textIn(row, "id");
    if (id === undefined || !ID.test(id)) return [];
    const updatedAt = Number(row["time_updated"]) || 0;
    return [
      {
        from: program.runner,
        handle: id,
        file,
        updatedAt,
        folder: textIn(row, "directory"),
        title: titleOf(textIn(row, "title")),
      },
    ];
  });
  return { conversations, total: Number(counted?.["n"] ?? 0) };
}

function textIn(row: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = row[name];
  return typeof value === "string" ? value : undefined;
}

interface Copy extends AsyncDisposable {
  readonly database: DatabaseSync;
}

/** undefined: there is none. With what is not yet in the file itself but in the log beside it. */
async function copyOf(file: string): Promise<Copy | undefined> {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-import-"));
  try {
    if (!(await copyFile(file, path.join(folder, DATABASE)))) {
      await rm(folder, { recursive: true });
      return undefined;
    }
    await copyFile(`${file}-wal`, path.join(folder, `${DATABASE}-wal`));
    const database = new DatabaseSync(path.join(folder, DATABASE), { allowExtension: false });
    try {
      database.exec("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON");
      requireTables(database, file);
    } catch (error) {
      database.close();
      throw error;
    }
    return {
      database,
      async [Symbol.asyncDispose]() {
        database.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (error instanceof HeddleError) throw error;
    throw new HeddleError("usage.invalid", `${file} cannot be read as a database of OpenCode`, { cause: error });
  }
}

async function copyFile(from: string, to: string): Promise<boolean> {
  await using handle = await openRecordFile(from);
  if (handle === undefined) return false;
  const { size } = await handle.stat();
  if (size > MAX_DATABASE_BYTES)
    throw new HeddleError(
      "limit.reached",
      `${from} has ${size} bytes; conversations of OpenCode are read from up to ${MAX_DATABASE_BYTES}`,
    );
  // It may grow meanwhile; what is read is bounded all the same.
  if (size > 0)
    await pipeline(
      handle.createReadStream({ start: 0, end: size - 1, autoClose: false }),
      createWriteStream(to, { mode: 0o600 }),
    );
  return true;
}

/** Not a view: its statement would be of others. */
function requireTables(database: DatabaseSync, file: string): void {
  const sql =
    "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name IN ('session', 'message', 'part')";
  if (database.prepare(sql).get()?.["n"] === 3) return;
  throw new HeddleError(
    "usage.invalid",
    `${file} has not the tables of OpenCode that Heddle knows (session, message, part)`,
  );
}

const BOUNDED = `CASE WHEN length(data) <= ${MAX_JSON_BYTES} THEN data END AS data`;

async function openInDatabase({ file, handle }: Conversation): Promise<OpenRecord | undefined> {
  const copy = await copyOf(file);
  if (copy === undefined) return undefined;
  const { database } = copy;
  const messages = database.prepare(
    `SELECT id, ${BOUNDED} FROM message WHERE session_id = ? ORDER BY time_created, id`,
  );
  const parts = database.prepare(`SELECT id, ${BOUNDED} FROM part WHERE message_id = ? ORDER BY id`);
  function* kept(): Generator<KeptMessage, void, undefined> {
    for (const row of messages.iterate(handle)) {
      const id = textIn(row, "id") ?? "";
      yield { id, info: json(textIn(row, "data")), parts: partsOf(id) };
    }
  }
  function* partsOf(messageId: string): Generator<unknown, void, undefined> {
    for (const row of parts.iterate(messageId)) yield withIds(json(textIn(row, "data")), textIn(row, "id") ?? "");
  }
  return recordOf(kept(), async () => copy[Symbol.asyncDispose]());
}

interface KeptMessage {
  readonly id: string;
  readonly info: unknown;
  readonly parts: AsyncIterable<unknown> | Iterable<unknown>;
}

function recordOf(
  messages: AsyncIterable<KeptMessage> | Iterable<KeptMessage>,
  close: () => Promise<void>,
): OpenRecord {
  let isGrowing = false;
  async function* bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    let unfinished: Buffer | undefined;
    for await (const message of messages) {
      const info = Info.safeParse(message.info).data;
      const line = await lineOf(message, info);
      // Broken off for ever, as something came after it.
      if (unfinished !== undefined) yield unfinished;
      const isOpen = info?.role === "assistant" && info.time?.completed === undefined;
      unfinished = isOpen ? line : undefined;
      if (!isOpen) yield line;
    }
    isGrowing = unfinished !== undefined;
  }
  return { bytes: bytes(), isGrowing: () => isGrowing, [Symbol.asyncDispose]: close };
}

/** Only what is read: the program changes the rest of old messages later. */
async function lineOf({ id, parts }: KeptMessage, info: Info | undefined): Promise<Buffer> {
  const read: unknown[] = [];
  let chars = 0;
  for await (const part of parts) {
    const found = info?.role === "user" ? UserPart.safeParse(part).data : OpenCodePart.safeParse(part).data;
    chars += JSON.stringify(found ?? "").length;
    if (found !== undefined && chars <= MAX_JSON_BYTES) read.push(found);
  }
  const { role, time, modelID: model } = info ?? {};
  return Buffer.from(`${JSON.stringify({ id, role, model, timestamp: time?.created, parts: read })}\n`);
}

/** They are columns beside the part. */
function withIds(part: unknown, id: string): unknown {
  return typeof part === "object" && part !== null ? { messageID: "", sessionID: "", ...part, id } : part;
}

function json(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

async function listFiles(program: AgentProgram, { limit, handle = "" }: Wanted): Promise<Kept> {
  const root = await realpath(path.join(dataFolder(program), STORAGE)).catch(() => undefined);
  if (root === undefined) return { conversations: [], total: 0 };
  const found: Conversation[] = [];
  for (const project of await foldersIn(path.join(root, "session"))) {
    for (const file of await filesIn(path.join(root, "session", project))) {
      const id = path.basename(file, ".json");
      if (!ID.test(id) || !id.startsWith(handle) || found.length >= MAX_FILES) continue;
      const session = Session.safeParse(json(await textOf(file))).data;
      if (session === undefined || session["parentID"] !== undefined) continue;
      const { directory: folder, title, time } = session;
      found.push({
        from: program.runner,
        handle: id,
        file,
        updatedAt: time?.updated ?? 0,
        folder,
        title: titleOf(title),
      });
    }
  }
  const conversations = found.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, limit);
  return { conversations, total: found.length };
}

async function openInFiles({ file, handle }: Conversation): Promise<OpenRecord | undefined> {
  const root = path.dirname(path.dirname(path.dirname(file)));
  async function* kept(): AsyncGenerator<KeptMessage, void, undefined> {
    for (const message of await filesIn(path.join(root, "message", handle))) {
      const id = path.basename(message, ".json");
      if (ID.test(id)) yield { id, info: json(await textOf(message)), parts: partsOf(id) };
    }
  }
  async function* partsOf(messageId: string): AsyncGenerator<unknown, void, undefined> {
    for (const part of await filesIn(path.join(root, "part", messageId))) yield json(await textOf(part));
  }
  return recordOf(kept(), () => Promise.resolve());
}

async function foldersIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** In the order of their names, which is that of time. */
async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".json")).map(({ name }) => name);
  return names
    .slice(0, MAX_FILES)
    .toSorted()
    .map((name) => path.join(folder, name));
}

/** undefined: it is no file, or too long. */
async function textOf(file: string): Promise<string | undefined> {
  await using handle = await openRecordFile(file);
  if (handle === undefined) return undefined;
  const { size } = await handle.stat();
  return size > MAX_JSON_BYTES ? undefined : (await handle.readFile()).subarray(0, MAX_JSON_BYTES).toString("utf8");
}
