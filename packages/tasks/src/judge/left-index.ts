/**
 * Which tasks may have left something in which folder, so that a task that begins looks at these and not at all there ever
 * were. A folder is found again under another name. In Heddle's home, which no agent sees:
 *
 *   <home>/left/<folder>/folder.json   its path and what it is known by
 *   <home>/left/<folder>/<task id>     a task that works or worked there; of a deleted one it says what is left to know
 *
 * A task is entered before its agent begins, and forgotten when it ended and all that it left was judged.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { Journal } from "@heddle/journal";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import type { Manifest } from "../tree/manifest.ts";
import { syncFolder } from "../tree/new-folder.ts";

const FolderRecord = z.strictObject({
  v: z.literal(1),
  /** Absolute, without links. */
  path: z.string(),
  /** Inode and time of birth, which stay when a folder is moved. Absent: the file system keeps no time of birth. */
  identity: z.string().optional(),
});
type FolderRecord = z.infer<typeof FolderRecord>;

/** Of a deleted task: when it ended, and what its owner had taken of what others left. */
const Gone = z.strictObject({
  v: z.literal(1),
  at: z.number(),
  taken: z.array(z.string()),
  /** Not all that its agent did is known; it began then. */
  createdAt: z.number().optional(),
});
export type Gone = Omit<z.infer<typeof Gone>, "v">;

export interface LeftFolder extends Pick<FolderRecord, "path" | "identity"> {
  readonly tasks: readonly { readonly id: string; readonly gone?: Gone }[];
}

interface Index {
  readonly journal: Journal;
  readonly home: string;
}

const FOLDER = "folder.json";
const PAGE = 200;

/** Durable before the agent of the task is asked for anything. */
export async function enterTask(index: Index, taskId: string, folder: string): Promise<void> {
  await enter(await whole(index), taskId, folder);
}

async function enter(root: string, taskId: string, path: string): Promise<void> {
  const record: FolderRecord = { v: 1, path, ...(await identityOf(path)) };
  const key = createHash("sha256").update(record.identity ?? path);
  const dir = join(root, key.digest("hex").slice(0, 32));
  const made = await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, FOLDER);
  if ((await readFile(file, "utf8").catch(() => "")) !== JSON.stringify(record)) await write(file, record);
  await writeFile(join(dir, taskId), "", { mode: 0o600 });
  for (const folder of made === undefined ? [dir] : [dir, root]) syncFolder(folder);
}

async function write(file: string, value: object): Promise<void> {
  const fresh = `${file}.${randomUUID()}.new`;
  await writeFile(fresh, JSON.stringify(value), { mode: 0o600, flush: true });
  await rename(fresh, file);
}

export async function foldersOf(index: Index): Promise<readonly LeftFolder[]> {
  const root = await whole(index);
  const found: LeftFolder[] = [];
  for (const name of await readdir(root)) {
    const text = await readFile(join(root, name, FOLDER), "utf8").catch(() => undefined);
    // Of a process that was killed before it had entered its task.
    if (text === undefined) continue;
    const { path, identity } = FolderRecord.parse(JSON.parse(text));
    const ids = (await readdir(join(root, name))).filter((id) => !id.startsWith(FOLDER) && !id.endsWith(".new"));
    const tasks = await Promise.all(ids.map((id) => readMark(join(root, name), id)));
    found.push({ path, ...(identity === undefined ? {} : { identity }), tasks });
  }
  return found;
}

async function readMark(dir: string, id: string): Promise<LeftFolder["tasks"][number]> {
  const { size } = await stat(join(dir, id)).catch(() => ({ size: 0 }));
  if (size === 0) return { id };
  const { v: _v, ...gone } = Gone.parse(JSON.parse(await readFile(join(dir, id), "utf8")));
  return { id, gone };
}

/** Beyond its deletion. */
export async function keepTask(home: string, taskId: string, gone: Gone): Promise<void> {
  for (const file of await marksOf(home, taskId)) await write(file, { v: 1, ...gone });
}

export async function forgetTask(home: string, taskId: string): Promise<void> {
  for (const file of await marksOf(home, taskId)) await rm(file, { force: true });
}

async function marksOf(home: string, taskId: string): Promise<readonly string[]> {
  const root = rootOf(home);
  const names = await readdir(root).catch(() => []);
  return names.map((name) => join(root, name, taskId)).filter((file) => existsSync(file));
}

function rootOf(home: string): string {
  return join(home, "left");
}

/** A store of an older version has tasks that nobody entered; they are entered once. */
async function whole({ journal, home }: Index): Promise<string> {
  const root = rootOf(home);
  if (existsSync(root)) return root;
  const fresh = `${root}.${randomUUID()}.new`;
  await mkdir(fresh, { recursive: true, mode: 0o700 });
  for (let after: string | undefined; ;) {
    const page = await journal.tasks.page({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const { id, round, spec } of page)
      if (round > 0) await enter(fresh, id, await realpath(spec.workspace).catch(() => spec.workspace));
    after = page.at(-1)?.id;
    if (page.length < PAGE) break;
  }
  // Another process may have been as fast.
  await rename(fresh, root).catch(async () => await rm(fresh, { recursive: true, force: true }));
  return root;
}

/** The device is no part of it: it has another number after a restart. */
async function identityOf(folder: string | Buffer): Promise<Pick<FolderRecord, "identity">> {
  const found = await stat(folder, { bigint: true }).catch(() => undefined);
  if (found?.isDirectory() !== true || found.birthtimeNs === 0n) return {};
  return { identity: `${found.ino} ${found.birthtimeNs}` };
}

/** Its old path, and where the folder of a record is now, as far as that is `here`, around it or in it. */
export function folderFinder(
  here: string,
  manifest: Manifest,
): (record: Pick<FolderRecord, "path" | "identity">) => Promise<ReadonlySet<string>> {
  let around: Promise<ReadonlyMap<string, string>> | undefined;
  let inside: Promise<ReadonlyMap<string, string>> | undefined;
  return async ({ path, identity }) => {
    if (identity === undefined || (await identityOf(path)).identity === identity) return new Set([path]);
    around ??= identified([...foldersAround(here)].map((folder) => [folder, folder]));
    const found = (await around).get(identity);
    if (found !== undefined) return new Set([path, found]);
    const at = (folder: RawPath): string | Buffer => toSystem(`${toRaw(here)}/${folder}`);
    const folders = [...manifest].filter(([, { kind }]) => kind === "folder");
    inside ??= identified(folders.map(([folder]) => [at(folder), `${here}/${toText(folder)}`]));
    return new Set([path, (await inside).get(identity) ?? path]);
  };
}

/** The folder, and those it lies in. */
function* foldersAround(folder: string): Generator<string> {
  for (let at = folder; at !== dirname(at); at = dirname(at)) yield at;
}

async function identified(
  folders: readonly (readonly [at: string | Buffer, name: string])[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const [at, name] of folders) {
    const { identity } = await identityOf(at);
    if (identity !== undefined) found.set(identity, name);
  }
  return found;
}
