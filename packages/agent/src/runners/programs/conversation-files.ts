/** Records that are a file of JSON lines for each conversation (`record-layouts.ts`). No link is followed. */
import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { reasonOf, HeddleError, visibleLine } from "@heddle/protocol";
import type { Conversation, Keeping, Kept, OpenRecord, Wanted } from "./conversations.ts";
import type { AgentProgram } from "./find-program.ts";
import { openRecordFile } from "./record-file.ts";
import type { About, RecordLayout } from "./record-layouts.ts";

/** More conversations than a person has; a list goes no further. */
const MAX_FILES = 100_000;
const MAX_FOLDERS = 20_000;
/** What a list shows is said at the beginning: instructions of the program come first, and may be long. */
const HEAD_BYTES = 256 * 1024;
const TITLE_CHARS = 120;

export function keptInFiles(layout: RecordLayout): Keeping {
  return { list: (program, wanted) => list(program, wanted, layout), open };
}

async function list({ runner, folders: [root] }: AgentProgram, wanted: Wanted, layout: RecordLayout): Promise<Kept> {
  const { handle: begins = "", limit } = wanted;
  const found = root === undefined ? [] : await findFiles(root, layout);
  // The name of a file may have only the first characters of its handle.
  const fits = found.filter(({ handle }) => handle.startsWith(begins) || begins.startsWith(handle));
  const dated = await Promise.all(
    fits.map(async (one) => ({
      ...one,
      updatedAt: Math.trunc((await stat(one.file).catch(() => undefined))?.mtimeMs ?? 0),
    })),
  );
  const newest = dated.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, limit);
  const conversations: Conversation[] = [];
  for (const one of newest) {
    const { handle = one.handle, ...about } = await aboutFile(one.file, layout);
    if (handle.startsWith(begins) && handle.startsWith(one.handle))
      conversations.push({ from: runner, ...one, ...about, handle });
  }
  return { conversations, total: fits.length };
}

type Found = Pick<Conversation, "handle" | "file" | "isArchived">;

/** One of each handle: what was put away is not what is in use. */
async function findFiles(root: string, layout: RecordLayout): Promise<readonly Found[]> {
  const found = new Map<string, Found>();
  for (const { name, isArchive } of layout.folders)
    for (const one of await walk(path.join(root, name), layout))
      if (!found.has(one.file) && (isArchive !== true || !hasHandle(found, one)))
        found.set(one.file, isArchive === true ? { ...one, isArchived: true } : one);
  return [...found.values()];
}

function hasHandle(found: ReadonlyMap<string, Found>, { handle }: Found): boolean {
  return [...found.values()].some((one) => one.handle === handle);
}

async function walk(root: string, { depth, file: isRecord }: RecordLayout): Promise<readonly Found[]> {
  const found: Found[] = [];
  let left = MAX_FOLDERS;
  async function look(folder: string, below: number): Promise<void> {
    if ((left -= 1) < 0 || found.length >= MAX_FILES) return;
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const file = path.join(folder, entry.name);
      const handle = entry.isFile() ? isRecord.exec(path.relative(real, file))?.[1] : undefined;
      if (handle !== undefined) found.push({ handle, file });
      else if (entry.isDirectory() && below > 0) await look(file, below - 1);
    }
  }
  const real = (await realpath(root).catch(() => undefined)) ?? "";
  if (real !== "") await look(real, depth);
  return found;
}

/** From the beginning of the file; a line that goes beyond it says nothing. */
async function aboutFile(file: string, { about, folderFile }: RecordLayout): Promise<About> {
  const head = await headOf(file);
  const [root = ""] = folderFile === undefined ? [] : (await headOf(folderFile(file))).split("\n");
  let { handle, folder, title }: About = root === "" ? {} : { folder: root };
  for (const line of head.split("\n")) {
    const said = about(parsed(line));
    handle ??= said.handle;
    folder ??= said.folder;
    title ??= said.title;
    if (folder !== undefined && title !== undefined) break;
  }
  return { handle, folder, title: titleOf(title) };
}

/** Empty: it cannot be read. */
async function headOf(file: string): Promise<string> {
  await using opened = await openRecordFile(file);
  if (opened === undefined) return "";
  const head = Buffer.alloc(HEAD_BYTES);
  const { bytesRead } = await opened.read(head, 0, HEAD_BYTES, 0);
  return head.toString("utf8", 0, bytesRead);
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

async function open({ file }: Conversation): Promise<OpenRecord | undefined> {
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
