/** Threads by newest activity: what they are about, where, who began them, whether one waits. */
import type { Thread } from "@heddle/protocol/http";
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Age, Icon, Link, Problem, Waiting } from "../../parts/base.tsx";
import { FilterField } from "../../parts/filter-field.tsx";
import { useKeys } from "../../parts/keys.ts";
import { go, look, usePlace } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { line } from "../../text/shown.ts";
import { folderName } from "../../words/figures.ts";
import { NewThread } from "./new-thread.tsx";
import { threadName } from "../run/thread-page.tsx";

const PAGE = 100;

interface Loaded {
  readonly threads: readonly Thread[];
  readonly next: string | null;
}

export function Threads(): ReactNode {
  useTitle("Threads");
  const { query } = usePlace();
  const { approvals, server } = useFacts();
  const [pages, setPages] = useState(1);
  const search = query.get("q") ?? undefined;
  const archived = query.get("archived") === "true";
  const { data, error, reload } = useResource<Loaded>(
    `threads:${search ?? ""}:${archived}:${pages}`,
    (signal) => readPages({ ...(search === undefined ? {} : { search }), archived }, pages, signal),
    {
      on: ({ body }) =>
        body.type === "task.prepared" || body.type === "task.turn-ended" || body.type === "turn.completed",
    },
  );
  const threads = data?.threads ?? [];
  const index = threads.findIndex(({ id }) => id === query.get("sel"));
  const move = (to: number): void => {
    const next = threads[Math.max(0, Math.min(threads.length - 1, to))];
    if (next !== undefined) look({ sel: next.id });
  };
  useKeys({
    j: () => move(index + 1),
    k: () => move(index - 1),
    Enter: () => {
      const chosen = threads[index];
      if (chosen !== undefined) go(`/threads/${chosen.id}`);
    },
  });
  const asking = new Set((approvals.data ?? []).map(({ threadId }) => threadId));
  return (
    <main className="tasks" aria-label="Threads" id="main">
      <header className="top">
        <h1>Threads</h1>
        <FilterField label="Filter threads" placeholder="Words of the name or the first input" />
        <span className="grow" />
        <label className="row t12 fg2">
          <input
            type="checkbox"
            checked={archived}
            onChange={(event) => look({ archived: event.target.checked ? "true" : undefined })}
          />
          archived
        </label>
      </header>
      <div className="tasks-body">
        {server.data?.principal.role === "viewer" ? null : <NewThread />}
        {error === undefined ? null : <Problem error={error} onRetry={reload} />}
        {data === undefined && error === undefined ? <Waiting lines={8} /> : null}
        {data !== undefined && threads.length === 0 ? <p className="empty">No thread is like that.</p> : null}
        <ul className="rows">
          {threads.map((thread) => (
            <Row
              key={thread.id}
              thread={thread}
              isSelected={thread.id === query.get("sel")}
              isAsking={asking.has(thread.id)}
            />
          ))}
        </ul>
        {(data?.next ?? null) === null ? null : (
          <button type="button" className="btn more-rows" onClick={() => setPages(pages + 1)}>
            {PAGE} more
          </button>
        )}
      </div>
    </main>
  );
}

async function readPages(
  filter: { search?: string; archived: boolean },
  pages: number,
  signal: AbortSignal,
): Promise<Loaded> {
  const threads: Thread[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const { data, nextCursor } = await api().listThreads(
      { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
      { signal },
    );
    threads.push(...data);
    if (nextCursor === null) return { threads, next: null };
    cursor = nextCursor;
  }
  return { threads, next: cursor ?? null };
}

function Row({ thread, isSelected, isAsking }: { thread: Thread; isSelected: boolean; isAsking: boolean }): ReactNode {
  const task = thread.origin.startsWith("task:") ? thread.origin.slice(5) : undefined;
  const hasFailed = thread.lastTurnStatus === "failed";
  const icon = isAsking ? "ask" : thread.status === "running" ? "running" : hasFailed ? "failed" : "thread";
  return (
    <li className={isSelected ? "sel" : ""}>
      <Icon name={icon} tone={isAsking ? "you" : hasFailed ? "no" : "fg2"} />
      <span className="grow">
        <Link to={task === undefined ? `/threads/${thread.id}` : `/tasks/${task}`} className="nm-link">
          {threadName(thread)}
        </Link>
        <span className="meta">
          {line(folderName(thread.workspace))} · {thread.turnCount} {thread.turnCount === 1 ? "turn" : "turns"} ·{" "}
          {task === undefined ? `began by ${line(thread.origin)}` : "of a task"}
          {isAsking ? " · waits for you" : ""}
          {thread.lastTurnStatus === undefined ? "" : ` · ${thread.lastTurnStatus}`}
        </span>
      </span>
      <Age at={thread.updatedAt} />
    </li>
  );
}
