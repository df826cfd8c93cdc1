/** What has changed: on disk since the start, or as one turn's edits were recorded, and what that is read from. */
import type { TaskDiff, ThreadDiff } from "@heddle/protocol/http";
import { useRef, useState, type ReactNode } from "react";
import { isOfWork, useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Problem, Waiting } from "../../parts/base.tsx";
import { useKeys } from "../../parts/keys.ts";
import { FileDiff, PlusMinus, type ChangedFile, type Comment } from "../../parts/diff.tsx";
import { line } from "../../text/shown.ts";
import { countLines } from "../../text/diff-lines.ts";

export type Scope = "start" | "checks" | `turn:${string}`;

interface ChangesProps {
  readonly taskId: string | undefined;
  readonly threadId: string | undefined;
  readonly scope: Scope;
  /** Items that began after the checks ran. */
  readonly sinceChecks: ReadonlySet<string>;
  readonly comments: readonly Comment[];
  readonly onComment: ((comment: Comment) => void) | undefined;
}

export interface Shown {
  readonly basis: string;
  readonly files: readonly ChangedFile[];
  readonly count: number;
  readonly isCut: boolean;
}

export function Changes(props: ChangesProps): ReactNode {
  const { taskId, threadId, scope, comments, onComment } = props;
  const { data, error, reload } = useResource<Shown | undefined>(
    // Of a task its thread changes nothing, and is known later.
    scope === "start" && taskId !== undefined ? `diff:${taskId}` : `diff:${taskId ?? ""}:${threadId ?? ""}:${scope}`,
    (signal) => read(props, signal),
    { on: (event) => isOfWork(event) && (event.threadId === threadId || event.taskId === taskId) },
  );
  if (error !== undefined && data === undefined) return <Problem error={error} onRetry={reload} />;
  if (data === undefined) return <Waiting lines={8} />;
  return <Files shown={data} comments={comments} onComment={onComment} />;
}

interface FilesProps {
  readonly shown: Shown;
  readonly comments: readonly Comment[];
  readonly onComment?: ((comment: Comment) => void) | undefined;
}

export function Files({ shown, comments, onComment }: FilesProps): ReactNode {
  const { basis, files, count, isCut } = shown;
  const box = useRef<HTMLDivElement>(null);
  const at = useFileKeys(box);
  const sum = (key: "added" | "removed"): number => files.reduce((all, file) => all + (file[key] ?? 0), 0);
  return (
    <div className="files" ref={box}>
      <p className="basis">
        <Icon name="branch" tone="fg2" />
        <span className="grow">{basis}</span>
        <PlusMinus added={sum("added")} removed={sum("removed")} />
      </p>
      {files.map((file, index) => (
        <FileDiff
          key={file.path + file.hash}
          file={file}
          isCurrent={index === at}
          comments={comments.filter(({ path }) => path === file.path)}
          onComment={onComment}
        />
      ))}
      <p className="whole">
        {isCut
          ? `${files.length} of ${count} files are shown here, or diffs were left out: heddle task diff shows them all`
          : files.length === 0
            ? "Nothing has changed."
            : `${count} ${count === 1 ? "file" : "files"}; nothing else differs there.`}
      </p>
    </div>
  );
}

/** `[` and `]` go from file to file, `v` ticks Viewed, `m` begins a comment on the first line that is new there. */
function useFileKeys(box: { readonly current: HTMLElement | null }): number {
  const [at, setAt] = useState(-1);
  const fileAt = (index: number): Element | undefined => box.current?.querySelectorAll(".file")[index];
  const press = (file: Element | undefined, selector: string): void =>
    file?.querySelector<HTMLElement>(selector)?.click();
  const move = (by: number): void => {
    const count = box.current?.querySelectorAll(".file").length ?? 0;
    const next = Math.max(0, Math.min(count - 1, at + by));
    if (count === 0) return;
    setAt(next);
    const file = fileAt(next);
    file?.scrollIntoView({ block: "nearest" });
    file?.querySelector<HTMLElement>("button")?.focus();
  };
  const comment = (): void => {
    const file = fileAt(Math.max(0, at));
    // Of a file that is folded, its lines are drawn first.
    press(file, ".fold[aria-expanded=false]");
    requestAnimationFrame(() => press(file, "tr.a .ln-btn, .ln-btn"));
  };
  useKeys({
    "[": () => move(-1),
    "]": () => move(1),
    v: () => press(fileAt(Math.max(0, at)), ".seen input"),
    m: comment,
  });
  return at;
}

async function read(
  { taskId, threadId, scope, sinceChecks }: ChangesProps,
  signal: AbortSignal,
): Promise<Shown | undefined> {
  if (scope === "start" && taskId !== undefined) return ofTask(await api().tasks.diff(taskId, {}, { signal }));
  if (threadId === undefined) return undefined;
  const turnId = scope.startsWith("turn:") ? scope.slice(5) : undefined;
  const diff = await api().threadDiff(threadId, turnId === undefined ? {} : { turnId }, { signal });
  return ofThread(diff, scope === "checks" ? sinceChecks : undefined);
}

const TASK_BASIS: Readonly<Record<TaskDiff["of"], string>> = {
  judged: "as it was frozen and judged, against how it was when the task began:",
  live: "as the folder is now, against how it was when the task began:",
};

export function ofTask({ of, folder, files, count, isCut }: TaskDiff): Shown {
  return {
    basis: `${TASK_BASIS[of]} ${line(folder)}`,
    files: files.map(({ path, how, diff, added, removed, sha256, standing, why }) => ({
      path,
      kind: how,
      diff,
      added,
      removed,
      hash: `${path}:${sha256 ?? how}`,
      note: standing === "left-out" ? "not judged" : why === undefined ? undefined : "not as left",
    })),
    count,
    isCut,
  };
}

export function ofThread({ files, count, isCut }: ThreadDiff, only?: ReadonlySet<string>): Shown {
  const shown = files.flatMap(({ path, kind, edits, diffTruncatedBytes }) => {
    const kept = edits.filter(({ itemId }) => only?.has(itemId) !== false);
    if (kept.length === 0) return [];
    const diff = kept.map((edit) => edit.diff).join("\n");
    return [
      {
        path,
        kind,
        diff,
        ...countLines(diff),
        hash: `${path}:${kept.at(-1)?.itemId ?? ""}`,
        truncatedBytes: diffTruncatedBytes,
      },
    ];
  });
  return {
    basis: "as the agent's edits were recorded; what commands wrote is not in it",
    files: shown,
    count: only === undefined ? count : shown.length,
    isCut,
  };
}
