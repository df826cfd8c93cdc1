/**
 * What a task changed, against how its workspace was when it began: as it was frozen and judged, or, while it is worked on,
 * as the folder is at this moment. A look freezes the changes first, so that nothing an agent does to the folder leads the
 * reader elsewhere.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { HeddleError, reasonOf, type TaskRecord } from "@heddle/protocol";
import type { WorkFile } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { toText } from "@heddle/tools/raw-path";
import { skippedFor } from "../attempt/baseline.ts";
import { finds, globOf } from "../checks/globs.ts";
import { readFrozen } from "../judge/freeze-claim.ts";
import { pickDelivered, telling, toWorkFile } from "../judge/pick.ts";
import { roomsOf } from "../judge/task-rooms.ts";
import { freezeWork } from "../tree/freeze-work.ts";
import type { Change, FrozenWork, KeptTree, TreeEntry } from "../tree/manifest.ts";
import { removeTree } from "../tree/remove-tree.ts";
import { diffOf, shownPath } from "../judge/work-changes.ts";
import { lastJudgement, readLog, requireBase, type Judgement } from "./recorded.ts";

export interface DiffOptions {
  /** Paths and globs, relative to the workspace; absent: all. */
  readonly paths?: readonly string[];
  /** Only names and numbers of lines. */
  readonly isStat?: boolean;
  readonly signal: AbortSignal;
}

export interface DiffFile extends WorkFile {
  /** As it is to be shown: escapes for bytes that are no text. */
  readonly shown: string;
  /** Whether the verdict stands for it; absent: nothing was judged, or there are too many to know. */
  readonly standing?: "delivered" | "left-out";
  readonly before?: FileFacts;
  readonly now?: FileFacts;
  readonly added?: number;
  readonly removed?: number;
  /** Text that people may see; absent: no text, too large, only a mode, or not asked for. */
  readonly diff?: string;
}

interface FileFacts {
  readonly kind: TreeEntry["kind"];
  readonly mode: string;
  readonly size: number;
  readonly sha256: string;
}

export interface WorkDiff {
  readonly taskId: string;
  /** `judged`: as it was frozen at the last claim; `live`: as the folder is now. */
  readonly of: "judged" | "live";
  readonly folder: string;
  readonly files: readonly DiffFile[];
  /** How many there are; `files` may be fewer. */
  readonly count: number;
  /** Text was left out to keep it small. */
  readonly isCut: boolean;
}

const MAX_FILES = 2000;
const MAX_CHARS = 8_000_000;

export async function diffWork(
  { journal, home }: { readonly journal: Journal; readonly home: string },
  task: TaskRecord,
  options: DiffOptions,
): Promise<WorkDiff> {
  const log = await readLog(journal, task.id);
  const { base } = await requireBase(home, task, log);
  const judgement = lastJudgement(log);
  const judged = task.holder === undefined || task.state === "claimed" ? await readFrozen(home, task) : undefined;
  if (judged !== undefined) return describe(task, options, { base, frozen: judged, judgement });
  const look = join(roomsOf(home, task.id), `look-${randomBytes(6).toString("hex")}`);
  const folder = task.folder ?? task.spec.workspace;
  try {
    const frozen = await freezeWork(folder, base, {
      into: look,
      skip: skippedFor({ home }),
      signal: options.signal,
    }).catch((cause: unknown) => {
      options.signal.throwIfAborted();
      const message = `what task ${task.id} changed in ${folder} cannot be read: ${reasonOf(cause)}`;
      throw new HeddleError("workspace.missing", message, { cause });
    });
    return describe(task, options, { base, frozen });
  } finally {
    await removeTree(look, new AbortController().signal);
  }
}

interface Shown {
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
  readonly judgement?: Judgement | undefined;
}

function describe(task: TaskRecord, { paths, isStat = false }: DiffOptions, shown: Shown): WorkDiff {
  const globs = paths?.map((path) => globOf(path));
  const changes = telling(shown.frozen.changes).filter(
    ({ path }) => globs === undefined || globs.some((glob) => finds(glob, toText(path)) || glob.matches(toText(path))),
  );
  const standingOf = standings(task, shown);
  const of = shown.judgement === undefined ? "live" : "judged";
  let left = MAX_CHARS;
  let isCut = changes.length > MAX_FILES;
  const files = changes.slice(0, MAX_FILES).map((change): DiffFile => {
    const text = diffOf({ base: shown.base, frozen: shown.frozen }, change);
    const isShown = text !== undefined && !isStat && text.length <= left;
    if (text !== undefined && !isStat && !isShown) isCut = true;
    left -= isShown ? text.length : 0;
    const standing = standingOf(change);
    return {
      ...toWorkFile(change),
      shown: shownPath(change.path),
      ...(standing === undefined ? {} : { standing }),
      ...(change.before === undefined ? {} : { before: facts(change.before) }),
      ...(change.now === undefined ? {} : { now: facts(change.now) }),
      ...(text === undefined ? {} : linesIn(text)),
      ...(isShown ? { diff: text } : {}),
    };
  });
  const folder = task.folder ?? task.spec.workspace;
  return { taskId: task.id, of, folder, files, count: changes.length, isCut };
}

/** By what was stated or accepted; where nothing was, by what the verdict names. */
function standings(
  { spec }: TaskRecord,
  { base, frozen, judgement }: Shown,
): (change: Change) => DiffFile["standing"] | undefined {
  const work = judgement?.checked.work;
  if (work === undefined || work.sha256 !== frozen.sha256) return () => undefined;
  const deliver = judgement?.accepted ?? spec.deliver;
  if (deliver !== undefined) {
    const picked = new Set(pickDelivered(base, frozen, deliver).map(({ path }) => path));
    const refused = new Set(work.others.filter(({ why }) => why !== undefined).map(({ path }) => path));
    return ({ path }) => (picked.has(path) && !refused.has(toText(path)) ? "delivered" : "left-out");
  }
  const delivered = new Set(work.delivered.map(({ path }) => path));
  const others = new Set(work.others.map(({ path }) => path));
  return ({ path }) => (delivered.has(toText(path)) ? "delivered" : others.has(toText(path)) ? "left-out" : undefined);
}

function facts({ kind, mode, size, sha256 }: TreeEntry): FileFacts {
  return { kind, mode: mode.toString(8).padStart(4, "0"), size, sha256 };
}

function linesIn(diff: string): { readonly added: number; readonly removed: number } {
  const lines = diff.split("\n");
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}
