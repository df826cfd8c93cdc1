/**
 * Work whose checks may rest on what agents of earlier tasks left and nobody judged. Where the checks pass as well with all of
 * it taken back, that is what the verdict stands for; otherwise the owner decides. Pure.
 */
import { visiblePath, type TaskBaseline } from "@heddle/protocol";
import type { TaskCheck } from "@heddle/protocol/tasks";
import { toRaw, type RawPath } from "@heddle/tools/raw-path";
import type { Ran } from "../checks/run-check.ts";
import { foldersOf, type Change, type KeptTree } from "../tree/manifest.ts";
import { runsCommands } from "./named-work.ts";
import { isSeenUnread, reasonOf, type Reason } from "./pick.ts";

type LeftFile = NonNullable<TaskBaseline["left"]>["files"][number];

const SHOWN = 10;

/** Of the beginning, and not what the work has made of them: put where reads are seen. */
export function watchedLeft(
  { left }: Pick<TaskBaseline, "left">,
  { manifest }: Pick<KeptTree, "manifest">,
  picked: readonly Change[],
): ReadonlySet<RawPath> {
  const own = new Set(picked.map(({ path }) => path));
  const paths = (left?.files ?? []).map(({ path }) => toRaw(path));
  return new Set(
    paths.filter((path) => {
      const kind = manifest.get(path)?.kind;
      return !own.has(path) && (kind === "file" || kind === "link");
    }),
  );
}

export interface LeftRead {
  readonly files: readonly LeftFile[];
  /** More than are known by name lie there, and a command may have read them. */
  readonly isMore: boolean;
}

export interface LeftLook {
  readonly ran: readonly Ran[];
  readonly base: KeptTree;
  readonly picked: readonly Change[];
  /** What takes back what was left. */
  readonly back: readonly Change[];
  /** What was taken back where the checks ran; absent: nothing. */
  readonly taken?: readonly Change[];
}

/** undefined: no check can rest on any. A command tells without reading that something came or went, or its mode or size. */
export function leftRead(
  { left }: Pick<TaskBaseline, "left">,
  checks: readonly TaskCheck[],
  { ran, base, picked, back, taken }: LeftLook,
): LeftRead | undefined {
  if (left === undefined) return undefined;
  const hasCommands = checks.some(runsCommands);
  const done = taken ?? picked;
  const watched = watchedLeft({ left }, base, done);
  const own = new Set(done.flatMap(({ path }) => [path, ...foldersOf(path)]));
  const seen = new Set(back.filter(isSeenUnread).map(({ path }) => path));
  const files = left.files.filter(({ path, isOutside }) => {
    const raw = toRaw(path);
    if (isOutside === true) return hasCommands;
    if (own.has(raw)) return false;
    if (!watched.has(raw) || seen.has(raw)) return hasCommands;
    return ran.some(({ reads }) => reads === undefined || reads.has(raw));
  });
  // What is not named can be taken back; was it?
  const isThere = taken === undefined || back.some(({ path }) => !own.has(path));
  const isMore = hasCommands && isThere && left.count > left.files.length;
  return files.length > 0 || isMore ? { files, isMore } : undefined;
}

export interface LeftTold {
  /** The task that is judged. */
  readonly own: string | undefined;
  /** Of a task, which then has nothing to show. */
  readonly isDeleted: (taskId: string) => boolean;
  /** The checks fail with it, and pass without it. */
  readonly isInTheWay?: boolean;
}

export function leftReason({ files, isMore }: LeftRead, { own, isDeleted, isInTheWay = false }: LeftTold): Reason {
  const how = { added: "new", changed: "changed", removed: "removed" };
  const by = (taskId: string): string => {
    if (taskId === own) return "an earlier attempt of this task";
    return `${taskId}${isDeleted(taskId) ? ", which is deleted" : ""}`;
  };
  const shown = files
    .slice(0, SHOWN)
    .map(
      (file) =>
        `${visiblePath(file.path)} (${how[file.how]} by ${by(file.taskId)}${file.isOutside === true ? ", outside the workspace too" : ""})`,
    );
  const more = files.length > SHOWN ? ` and ${files.length - SHOWN} more` : "";
  const many = isMore ? `${shown.length === 0 ? "" : ", and "}more files than can be watched` : "";
  const first = files.find(({ taskId }) => taskId !== own && !isDeleted(taskId));
  const undo = first?.isUndoable === true ? `, heddle task undo ${first.taskId} takes them back` : "";
  const help = first === undefined ? "" : `; heddle task diff ${first.taskId} shows them${undo}`;
  const what = "files that agents of earlier tasks left in the workspace and that were never judged";
  const said = isInTheWay ? `the checks pass without ${what}, and fail with it` : `the checks rest on ${what}`;
  const message = `${said}: ${shown.join(", ")}${more}${many}${help}`;
  return reasonOf(
    "left",
    message,
    files.map(({ path }) => path),
  );
}
