/**
 * What the setup of a clean room makes, and whose it is. It may run code that the agent delivered, so it is run twice:
 *
 *   beginning alone ───────────▶ nobody's code but the owner's has run: all it makes is the owner's
 *   beginning + picked work ───▶ what differs from that was decided by the work
 *                                  named by `makes` of the setup: it counts, dated as the work is
 *                                  anything else: the checks have to pass without it, or the owner decides
 *
 * A file of the work that the setup makes again is what the setup made of it.
 */
import { lstatSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import type { TaskSetup, TaskSpec } from "@heddle/protocol/tasks";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { isBroken, openRoomCommands, type RoomOptions } from "../checks/commands.ts";
import { globList, literalGlob } from "../checks/globs.ts";
import type { Workspace } from "../checks/workspace.ts";
import { FolderCursor } from "../tree/folder-cursor.ts";
import {
  byPath,
  foldersOf,
  isSameEntry,
  type Change,
  type KeptTree,
  type Manifest,
  type TreeEntry,
} from "../tree/manifest.ts";
import { MAX_BYTES, megabytes } from "../tree/keep-tree.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { sliced } from "../tree/slices.ts";
import { EntryTaker } from "../tree/take-entry.ts";
import { kindOf, walkTree } from "../tree/walk-tree.ts";
import { described, roleOf } from "./file-role.ts";
import { isRepository, layerOf, reasonOf, telling, type Reason } from "./pick.ts";
import { protectedChanges } from "./protected.ts";
import { openScratch } from "./scratch.ts";

export interface SetUp extends AsyncDisposable {
  /** What was written, as a tree above the beginning. */
  readonly upper: string;
  /** What is not as at the beginning, whoever made it. */
  readonly changes: readonly Change[];
  readonly reads: ReadonlySet<RawPath> | undefined;
  readonly failure?: HeddleError;
}

export interface SetupRoom {
  readonly setup: TaskSetup;
  readonly base: KeptTree;
  readonly files: Workspace;
  readonly layer: RoomOptions["layer"];
}

/** Runs it once. What it left is there also when it failed. */
export async function runSetup(checkOptions: CheckOptions, { setup, base, files, layer }: SetupRoom): Promise<SetUp> {
  const { home, signal } = checkOptions;
  const scratch = await openScratch(home, "setup");
  try {
    const upper = join(scratch.folder, "upper");
    await mkdir(upper, { mode: 0o755 });
    await using commands = openRoomCommands(checkOptions, files, { lower: [base.folder], layer, keepUpper: upper });
    const end = await commands.run({ ...setup, cwd: "." });
    const failure = isBroken(end) ? end.message : end.exitCode === 0 ? undefined : `it ended with ${end.exitCode}`;
    const changes = await changesIn((await commands.tree()) ?? upper, base, signal);
    const reads = await commands.reads();
    return {
      upper,
      changes,
      reads,
      ...failed(failure, end),
      [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
    };
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

function failed(why: string | undefined, { output }: { readonly output: string }): Pick<SetUp, "failure"> {
  if (why === undefined) return {};
  const message = `the setup of the clean room failed: ${why}\n${output}`.trim();
  return { failure: new HeddleError("task.setup-failed", message) };
}

/** A file of the beginning with the same change time, which no program can set, needs no reading. */
async function changesIn(tree: string, base: KeptTree, signal: AbortSignal): Promise<readonly Change[]> {
  const from = `${toRaw(base.folder)}/`;
  const gone = new Map(base.manifest);
  const suspects: RawPath[] = [];
  await walkTree(`${tree}/.`, { skipped: new Set(base.skipped), signal }, (path, stat) => {
    const entry = base.manifest.get(path);
    gone.delete(path);
    if (entry?.kind === "folder" && stat.isDirectory() && (stat.mode & 0o7777) === entry.mode) return;
    if (entry?.kind === "file" && stat.isFile()) {
      const kept = lstatSync(toSystem(from + path));
      if (kept.ino === stat.ino && kept.ctimeMs === stat.ctimeMs && kept.size === stat.size) return;
    }
    if (entry?.kind !== "other" || kindOf(stat) !== "other") suspects.push(path);
  });
  using cursor = new FolderCursor(`${tree}/.`);
  const slices = sliced(signal);
  let bytes = 0;
  // Code that it runs can make a file of a terabyte in no time.
  const admit = (path: RawPath, size: number): void => {
    bytes += size;
    if (bytes <= MAX_BYTES) return;
    const message = `the setup of the clean room made more than ${megabytes(MAX_BYTES)}, up to ${toText(path)}`;
    throw new HeddleError("limit.reached", message);
  };
  const taker = new EntryTaker(cursor, slices, admit);
  const changes: Change[] = [];
  for (const path of suspects) {
    if (slices.isOverSoon()) await slices.rest();
    const now = await taker.take(path);
    const before = base.manifest.get(path);
    if (!isSameEntry(before, now)) changes.push(changeOf(path, before, now));
  }
  // What is no file, folder or link is in no kept tree.
  for (const [path, before] of gone) if (before.kind !== "other") changes.push(changeOf(path, before, undefined));
  return changes.toSorted(byPath);
}

function changeOf(path: RawPath, before: TreeEntry | undefined, now: TreeEntry | undefined): Change {
  if (now === undefined) return { path, how: "removed", ...(before === undefined ? {} : { before }) };
  return before === undefined ? { path, how: "added", now } : { path, how: "changed", before, now };
}

/** What the setup makes of the beginning alone, with what takes back what earlier agents left. Run once for each. */
export interface BeginningSetups extends AsyncDisposable {
  of(setup: TaskSetup, back: readonly Change[]): Promise<SetUp>;
}

export function openBeginningSetups(run: BeginningSetups["of"]): BeginningSetups {
  const known = new Map<readonly Change[] | undefined, Promise<SetUp>>();
  return {
    of(setup, back) {
      const key = back.length === 0 ? undefined : back;
      const one = known.get(key) ?? run(setup, back);
      known.set(key, one);
      return one;
    },
    async [Symbol.asyncDispose]() {
      for (const one of known.values()) await (await one.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}

/** What the work made of the setup: what it is now, and what it is without the work. */
export interface SetupDifference {
  /** The spec names it. */
  readonly made: readonly Change[];
  readonly doubted: readonly Change[];
  /** Files of the work that the setup made again, whatever of. */
  readonly remade: ReadonlySet<RawPath>;
  /** On the beginning alone the setup fails. */
  readonly isFailing?: boolean;
}

export const NO_DIFFERENCE: SetupDifference = { made: [], doubted: [], remade: new Set() };

export function compareSetups(
  spec: Pick<TaskSpec, "setup" | "protect">,
  { base, picked }: Pick<RoomContents, "base" | "picked">,
  [without, withWork]: readonly [SetUp, SetUp],
): SetupDifference {
  const [was, is] = [manifestOf(base, without), manifestOf(base, withWork)];
  const work = new Map(picked.map(({ path, now }) => [path, now]));
  const isLeft = (path: RawPath): boolean => work.has(path) && isSameEntry(work.get(path), is.get(path));
  const remade = new Set([...work.keys()].filter((path) => !isLeft(path)));
  const paths = new Set([...[...without.changes, ...withWork.changes].map(({ path }) => path), ...remade]);
  const differing = [...paths].flatMap((path) => {
    const [before, now] = [was.get(path), is.get(path)];
    return isLeft(path) || isSameEntry(before, now) ? [] : [changeOf(path, before, now)];
  });
  const isNamed = globList(spec.setup?.makes ?? []);
  const named = differing.filter(
    (change) =>
      isNamed(toText(change.path)) &&
      change.now?.kind !== "other" &&
      !isRepository(change) &&
      protectedChanges([change], spec).length === 0,
  );
  const made = completePicks(was, differing, named);
  const counted = new Set(made.map(({ path }) => path));
  return { made, doubted: differing.filter(({ path }) => !counted.has(path)).toSorted(byPath), remade };
}

function manifestOf({ manifest }: KeptTree, { changes }: SetUp): Manifest {
  const entries = new Map(manifest);
  for (const { path, now } of changes) {
    if (now === undefined) entries.delete(path);
    else entries.set(path, now);
  }
  return entries;
}

/** A tree with what the setup made of the work and the spec names, above what it makes of the beginning. */
export async function keepMade(
  checkOptions: CheckOptions,
  {
    files,
    upper,
    made,
    changedAt,
  }: {
    readonly files: Workspace;
    readonly upper: string;
    readonly made: readonly Change[];
    readonly changedAt: number;
  },
  lower: readonly string[],
): Promise<string> {
  const into = `${upper}.made`;
  await mkdir(into, { mode: 0o755 });
  await using commands = openRoomCommands(checkOptions, files, {
    lower,
    layer: { ...layerOf({ folder: upper }, made), changedAt },
    keepUpper: into,
  });
  await commands.open({ network: false });
  return into;
}

const SHOWN = 10;
const MAX_PROPOSED = 20;

export function setupReason({ doubted, isFailing }: SetupDifference, base: KeptTree): Reason {
  const all = telling(doubted);
  const shown = all.slice(0, SHOWN).map(({ path, how }) => described({ path: toText(path), how }));
  const more = all.length > SHOWN ? ` and ${all.length - SHOWN} more` : "";
  const fails = isFailing === true ? " (where the setup fails)" : "";
  const globs = proposed(all, base);
  const line =
    globs.length === 0 ? "" : `, for example makes: [${globs.map((glob) => JSON.stringify(glob)).join(", ")}]`;
  const message =
    `the setup, which may run code of the agent's, makes other files of the work than of the beginning${fails}, and the checks do not pass without them: ` +
    `${shown.join(", ")}${more}; where the work may decide what these are, say so in the spec, under setup${line}`;
  return reasonOf(
    "setup",
    message,
    all.map(({ path }) => toText(path)),
  );
}

/** Folders of dependencies and new ones as a whole, anything else by its name. */
function proposed(doubted: readonly Change[], { manifest }: KeptTree): readonly string[] {
  const globs = new Set(
    doubted
      .filter((change) => !isRepository(change))
      .map(({ path }) => {
        const around = [...foldersOf(path)];
        const folder = around.find((at) => roleOf(`${toText(at)}/x`) === "dependency" || !manifest.has(at));
        return folder === undefined ? literalGlob(toText(path)) : `${toText(folder)}/**`;
      }),
  );
  return globs.size > MAX_PROPOSED ? [] : [...globs];
}
