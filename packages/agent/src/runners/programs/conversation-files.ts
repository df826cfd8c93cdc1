/** Records of Codex and Claude Code: a file of JSON lines for each conversation. No link is followed. */
import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { reasonOf, HeddleError, visibleLine } from "@heddle/protocol";
import { z } from "zod";
import type { Conversation, Kept, OpenRecord, Wanted } from "./conversations.ts";
import type { AgentProgram } from "./find-program.ts";
import { openRecordFile } from "./own-record.ts";

/** More conversations than a person has; a list goes no further. */
const MAX_FILES = 100_000;
const MAX_FOLDERS = 20_000;
/** What a list shows is said at the beginning: instructions of the program come first, and may be long. */
const HEAD_BYTES = 256 * 1024;
const TITLE_CHARS = 120;

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

const Codex = z.object({
  type: z.string(),
  payload: z.looseObject({ type: z.string().optional(), cwd: z.string().optional(), message: z.unknown().optional() }),
});
const Claude = z.looseObject({
  type: z.string(),
  cwd: z.string().optional(),
  isMeta: z.boolean().optional(),
  isSidechain: z.boolean().optional(),
  message: z.looseObject({ content: z.unknown() }).optional(),
});
const Blocks = z.array(z.looseObject({ type: z.string(), text: z.string().optional() }));

type About = Pick<Conversation, "folder" | "title">;

export const listCodex = (program: AgentProgram, wanted: Wanted): Promise<Kept> =>
  listFiles(program, wanted, {
    folder: "sessions",
    // By year, month and day.
    depth: 3,
    name: new RegExp(`^rollout-.*-(${UUID})\\.jsonl$`),
    about(line) {
      const { type, payload } = Codex.safeParse(line).data ?? {};
      if (type === "session_meta") return { folder: payload?.cwd };
      const isSaid = type === "event_msg" && payload?.type === "user_message";
      return isSaid && typeof payload.message === "string" ? { title: payload.message } : {};
    },
  });

export const listClaude = (program: AgentProgram, wanted: Wanted): Promise<Kept> =>
  listFiles(program, wanted, {
    folder: "projects",
    // By folder of work.
    depth: 1,
    name: new RegExp(`^(${UUID})\\.jsonl$`),
    about(line) {
      const { type, cwd: folder, message, isMeta, isSidechain } = Claude.safeParse(line).data ?? {};
      if (type !== "user" || isMeta === true || isSidechain === true) return { folder };
      const content = message?.content;
      const title =
        typeof content === "string" ? content : Blocks.safeParse(content).data?.find(({ text }) => text)?.text;
      return { folder, title };
    },
  });

interface Files {
  readonly folder: string;
  readonly depth: number;
  /** Its first group is the handle. */
  readonly name: RegExp;
  readonly about: (line: unknown) => About;
}

async function listFiles({ runner, folders: [root] }: AgentProgram, wanted: Wanted, files: Files): Promise<Kept> {
  const found = root === undefined ? [] : await walk(path.join(root, files.folder), files);
  const fits = found.filter(({ handle }) => handle.startsWith(wanted.handle ?? ""));
  const dated = await Promise.all(
    fits.map(async (one) => ({
      ...one,
      updatedAt: Math.trunc((await stat(one.file).catch(() => undefined))?.mtimeMs ?? 0),
    })),
  );
  const newest = dated.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, wanted.limit);
  const conversations: Conversation[] = [];
  for (const one of newest) conversations.push({ from: runner, ...one, ...(await aboutFile(one.file, files.about)) });
  return { conversations, total: fits.length };
}

interface Found {
  readonly handle: string;
  readonly file: string;
}

async function walk(root: string, { depth, name }: Files): Promise<readonly Found[]> {
  const found: Found[] = [];
  let left = MAX_FOLDERS;
  async function look(folder: string, below: number): Promise<void> {
    if ((left -= 1) < 0 || found.length >= MAX_FILES) return;
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const file = path.join(folder, entry.name);
      const handle = entry.isFile() ? name.exec(entry.name)?.[1] : undefined;
      if (handle !== undefined) found.push({ handle, file });
      else if (entry.isDirectory() && below > 0) await look(file, below - 1);
    }
  }
  const real = await realpath(root).catch(() => undefined);
  if (real !== undefined) await look(real, depth);
  return found;
}

/** From the beginning of the file; a line that goes beyond it says nothing. */
async function aboutFile(file: string, about: Files["about"]): Promise<About> {
  await using handle = await openRecordFile(file);
  if (handle === undefined) return {};
  const head = Buffer.alloc(HEAD_BYTES);
  const { bytesRead } = await handle.read(head, 0, HEAD_BYTES, 0);
  let folder: string | undefined;
  let title: string | undefined;
  for (const line of head.toString("utf8", 0, bytesRead).split("\n")) {
    const said = about(parsed(line));
    folder ??= said.folder;
    title ??= said.title;
    if (folder !== undefined && title !== undefined) break;
  }
  return { folder, title: titleOf(title) };
}

export function titleOf(text: string | undefined): string | undefined {
  const shown = visibleLine(
    (text ?? "")
      .trim()
      .slice(0, 8 * TITLE_CHARS)
      .replace(/\s+/gu, " "),
  );
  if (shown === "") return undefined;
  // Never half of a surrogate pair.
  return shown.length <= TITLE_CHARS ? shown : `${shown.slice(0, TITLE_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

export async function openFileRecord({ file }: Conversation): Promise<OpenRecord | undefined> {
  const handle = await openRecordFile(file);
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const bytes = size === 0 ? none() : handle.createReadStream({ start: 0, end: size - 1, autoClose: false });
    return { bytes, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw new HeddleError("usage.invalid", `${file} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

async function* none(): AsyncGenerator<Uint8Array, void, undefined> {}
