/**
 * Work whose checks read what agents of earlier tasks left and nobody judged. Where the checks pass as well without what those
 * agents added, that is what the verdict stands for; otherwise the owner decides. Pure.
 */
import { visibleName, type TaskBaseline } from "@heddle/protocol";
import { MAX_WORK_FILES, type TaskCheck, type WorkReview } from "@heddle/protocol/tasks";
import { toRaw, type RawPath } from "@heddle/tools/raw-path";
import type { Ran } from "../checks/run-check.ts";
import type { Change, KeptTree } from "../tree/manifest.ts";
import { runsCommands } from "./named-work.ts";

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

/** undefined: no check rests on any. That something is gone is seen by no reading of it. */
export function leftRead(
  { left }: Pick<TaskBaseline, "left">,
  checks: readonly TaskCheck[],
  { ran, base, picked }: { readonly ran: readonly Ran[]; readonly base: KeptTree; readonly picked: readonly Change[] },
): LeftRead | undefined {
  if (left === undefined) return undefined;
  const hasCommands = checks.some(runsCommands);
  const watched = watchedLeft({ left }, base, picked);
  const own = new Set(picked.map(({ path }) => path));
  const files = left.files.filter(({ path }) => {
    const raw = toRaw(path);
    if (own.has(raw)) return false;
    if (!watched.has(raw)) return hasCommands;
    return ran.some(({ reads }) => reads === undefined || reads.has(raw));
  });
  const isMore = hasCommands && left.count > left.files.length;
  return files.length > 0 || isMore ? { files, isMore } : undefined;
}

/** As if they had not been left; undefined: what was there before them is not known. */
export function withoutLeft({ files, isMore }: LeftRead, { manifest }: KeptTree): readonly Change[] | undefined {
  if (isMore || files.some(({ how }) => how !== "added")) return undefined;
  return files.flatMap(({ path: text }) => {
    const path = toRaw(text);
    const before = manifest.get(path);
    return before === undefined ? [] : [{ path, how: "removed", before } as const];
  });
}

export function leftReason({ files, isMore }: LeftRead): WorkReview["reasons"][number] {
  const how = { added: "new", changed: "changed", removed: "removed" };
  const shown = files.slice(0, SHOWN).map((file) => `${visibleName(file.path)} (${how[file.how]} by ${file.taskId})`);
  const more = files.length > SHOWN ? ` and ${files.length - SHOWN} more` : "";
  const many = isMore ? `${shown.length === 0 ? "" : ", and "}more files than can be watched` : "";
  const [task] = new Set(files.map(({ taskId }) => taskId));
  const help =
    task === undefined ? "" : `; heddle task diff ${task} shows them, heddle task undo ${task} takes them back`;
  const message = `the checks rest on what agents of earlier tasks left in the workspace and nobody judged: ${shown.join(", ")}${more}${many}${help}`;
  const names = files.map(({ path }) => path);
  const count = names.length > MAX_WORK_FILES ? { count: names.length } : {};
  return { kind: "left", message, files: names.slice(0, MAX_WORK_FILES), ...count };
}
