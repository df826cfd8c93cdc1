/**
 * A task file that lies where an agent works can be written or rewritten by it, and would then decide about the next run.
 * Which content an agent left under which name is known from what was frozen when it stopped; a file that is like that is
 * not run before somebody has looked at it.
 */
import { createHash } from "node:crypto";
import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { hasEnded, hasOwnTree, HeddleError, visibleName, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { toRaw, toText, type RawPath } from "@heddle/tools/raw-path";
import { CLOCK_STEP_MS } from "@heddle/tools/files";
import { readLeft } from "../judge/left.ts";
import { baseFolder } from "../judge/task-rooms.ts";
import { readKeptTree } from "../tree/keep-tree.ts";

export interface SpecFile {
  readonly file: string;
  /** Of the file as it was read. */
  readonly sha256: string;
  /** When it last changed, where it is not under its name any more. */
  readonly changedAt?: number | undefined;
  /** Of the task in it. */
  readonly workspace: string;
  /** What takes it as it is. */
  readonly help: string;
}

export interface SpecStore {
  readonly journal: Journal;
  readonly home: string;
}

/** `task.invalid` when an earlier task left the file like this and nobody has accepted that since. */
export async function refuseChangedSpec(store: SpecStore, spec: SpecFile): Promise<void> {
  const traces = await tracesOf(spec);
  // Newest first: who was added from the very content later has accepted it.
  for (const task of await earlierTasks(store.journal, traces, spec.workspace)) {
    const found = await leftBy(store.home, task, traces);
    if (found !== undefined) throw refusal(spec, task, found);
    if (task.source.sha256 === spec.sha256 && (await realFile(task.source.ref ?? "")) === traces.path) return;
  }
}

/** Everything that decides what is read under the name of the file: itself, and links on the way to it. */
interface Traces {
  /** Where it really is. */
  readonly path: string;
  /** Hashes as a manifest has them, by absolute path. */
  readonly hashes: ReadonlyMap<string, string>;
  /** When it last changed in any way, which no program can set; undefined: it is not there any more under this name. */
  readonly changedAt: number | undefined;
}

async function tracesOf({ file, sha256, changedAt }: SpecFile): Promise<Traces> {
  const path = await realFile(file);
  const hashes = new Map([[path, sha256]]);
  for (let at = resolve(file); at !== dirname(at); at = dirname(at)) {
    if ((await lstat(at).catch(() => undefined))?.isSymbolicLink() !== true) continue;
    const target = await readlink(at, { encoding: "buffer" });
    // The name of the link by where it lies, because the folder of a task is known so.
    hashes.set(await realFile(at, false), createHash("sha256").update(target).digest("hex"));
  }
  return { path, hashes, changedAt: changedAt ?? (await stat(path).catch(() => undefined))?.ctimeMs };
}

async function realFile(file: string, isFollowed = true): Promise<string> {
  const byFolder = async (): Promise<string> =>
    join(await realpath(dirname(file)).catch(() => dirname(file)), basename(file));
  return isFollowed ? await realpath(file).catch(byFolder) : await byFolder();
}

/** Of all folders that the file lies in, and of the one that it is about. Newest first. */
async function earlierTasks(journal: Journal, { hashes }: Traces, workspace: string): Promise<readonly TaskRecord[]> {
  const folders = new Set([workspace, await realpath(workspace).catch(() => workspace)]);
  for (const path of hashes.keys()) for (let at = path; at !== dirname(at); at = dirname(at)) folders.add(dirname(at));
  return (await tasksIn(journal, folders)).toSorted((one, other) => other.createdAt - one.createdAt);
}

const PAGE = 200;

async function tasksIn(journal: Journal, folders: Iterable<string>): Promise<readonly TaskRecord[]> {
  const tasks: TaskRecord[] = [];
  for (const workspace of new Set(folders)) {
    for (let after: string | undefined; ;) {
      const page = await journal.tasks.page({ workspace, limit: PAGE, ...(after === undefined ? {} : { after }) });
      tasks.push(...page);
      after = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
  }
  return tasks;
}

interface Found {
  readonly path: RawPath;
  /** Nothing says what the agent changed, and the file changed while the task lasted, or lasts. */
  readonly isGuess?: true;
}

async function leftBy(home: string, task: TaskRecord, traces: Traces): Promise<Found | undefined> {
  if (task.round === 0) return undefined;
  const folder = await realpath(task.spec.workspace).catch(() => task.spec.workspace);
  const wanted = new Map<RawPath, string>();
  for (const [path, sha256] of traces.hashes)
    if (path.startsWith(`${folder}/`)) wanted.set(toRaw(path.slice(folder.length + 1)), sha256);
  if (wanted.size === 0) return undefined;
  const { spec, delivered = [], others = [] } = task.lastCheck?.work ?? {};
  const files = [...delivered, ...others];
  const left = await readLeft(home, task, new Set(wanted.values()));
  for (const [path, sha256] of wanted) {
    const isListed = files.some((file) => file.sha256 === sha256 && file.path === toText(path));
    const isSpec = spec?.path === traces.path && spec.sha256 === sha256;
    if (isListed || isSpec || left.changes.some((change) => change.path === path && change.now?.sha256 === sha256))
      return { path };
  }
  return left.isKnown ? undefined : await guess(home, task, { ...traces, wanted });
}

/** An agent at work has not been looked at yet; a worker that died, or a copy that was collected, left no word about its last changes. */
async function guess(
  home: string,
  task: TaskRecord,
  { changedAt, wanted }: Traces & { readonly wanted: ReadonlyMap<RawPath, string> },
): Promise<Found | undefined> {
  if (hasOwnTree(task.spec) || changedAt === undefined) return undefined;
  const until = isOver(task) ? task.updatedAt + CLOCK_STEP_MS : Number.POSITIVE_INFINITY;
  if (changedAt < task.createdAt - CLOCK_STEP_MS || changedAt > until) return undefined;
  const base = await readKeptTree(baseFolder(home, task.id)).catch(() => undefined);
  for (const [path, sha256] of wanted) if (base?.manifest.get(path)?.sha256 !== sha256) return { path, isGuess: true };
  return undefined;
}

function isOver(task: TaskRecord): boolean {
  return hasEnded(task) || task.state === "paused";
}

function refusal({ file, help }: SpecFile, task: TaskRecord, { path, isGuess }: Found): HeddleError {
  const text = toText(path);
  const who = `${task.id} (${task.spec.name})`;
  if (isGuess === true && !isOver(task)) {
    const message = `${file} changed while ${who} works in its folder, and nothing says that you wrote it; look at it, then ${help}`;
    return new HeddleError("task.invalid", message, { details: { taskId: task.id, path: text } });
  }
  const what =
    isGuess === true
      ? `changed while ${who} worked in its folder, and nothing says that you did it`
      : `is as the agent of ${who} left it, not as you wrote it`;
  return new HeddleError(
    "task.invalid",
    `${file} ${what}; look at it with heddle task diff ${task.id} -- ${visibleName(text)}, then ${help}`,
    { details: { taskId: task.id, path: text } },
  );
}
