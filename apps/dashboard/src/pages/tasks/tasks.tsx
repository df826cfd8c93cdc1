/** The whole field: queue, run, ended; as a list by need, or as a board. */
import type { TaskSummary } from "@heddle/protocol/http";
import { TASK_STATES, type TaskState } from "@heddle/protocol/task-words";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Kbd, Link, Problem, Segments, Waiting } from "../../parts/base.tsx";
import { FilterField } from "../../parts/filter-field.tsx";
import { useKeys } from "../../parts/keys.ts";
import { go, look, usePlace } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { line } from "../../text/shown.ts";
import { Board } from "./board.tsx";
import { NEEDS, needOf, type Need } from "./groups.ts";
import { Selection } from "./selection.tsx";
import { TaskTable } from "./task-table.tsx";

const PAGE = 100;

interface Loaded {
  readonly tasks: readonly TaskSummary[];
  readonly next: string | null;
}

export function Tasks(): ReactNode {
  const { query } = usePlace();
  const [pages, setPages] = useState(1);
  const filter = filterOf(query);
  const key = JSON.stringify(filter);
  useEffect(() => setPages(1), [key]);
  const { data, error, isLoading, reload } = useResource<Loaded>(
    `tasks:${key}:${pages}`,
    (signal) => readPages(filter, pages, signal),
    { on: (event) => event.taskId !== undefined },
  );
  const last = useRef(data);
  if (data !== undefined) last.current = data;
  const tasks = last.current?.tasks ?? [];
  const groups = groupsOf(tasks);
  const order = groups.flatMap(([, members]) => members);
  const selected = order.find(({ id }) => id === query.get("sel"));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const isBoard = query.get("view") === "board";
  useTitle("Tasks");
  useTaskKeys(order, selected, (id) => setChosen(toggled(chosen, id)));
  return (
    <main className="tasks" aria-label="Tasks" id="main">
      <Head isBoard={isBoard} />
      {chosen.size === 0 ? null : (
        <Selection tasks={order.filter(({ id }) => chosen.has(id))} onDone={() => setChosen(new Set())} />
      )}
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && last.current === undefined && isLoading ? <Waiting lines={10} /> : null}
      {last.current !== undefined && tasks.length === 0 ? <Empty hasFilter={key !== "{}"} /> : null}
      <div className="tasks-body">
        {isBoard ? (
          <Board tasks={tasks} selected={selected?.id} />
        ) : (
          <TaskTable
            groups={groups}
            selected={selected?.id}
            chosen={chosen}
            onChoose={(id) => setChosen(toggled(chosen, id))}
          />
        )}
        {(last.current?.next ?? null) === null ? null : (
          <button type="button" className="btn more-rows" onClick={() => setPages(pages + 1)}>
            {isLoading ? "loading…" : `${PAGE} more`}
          </button>
        )}
      </div>
      <Legend isBoard={isBoard} />
    </main>
  );
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  return next;
}

interface Filter {
  readonly state?: readonly TaskState[];
  readonly search?: string;
  readonly workspace?: string;
  readonly label?: string;
  readonly parentId?: string;
  readonly archived?: boolean;
}

function filterOf(query: URLSearchParams): Filter {
  const text = (name: string): string | undefined => query.get(name) ?? undefined;
  const states = (text("state") ?? "")
    .split(",")
    .filter((one): one is TaskState => TASK_STATES.some((state) => state === one));
  const given = { search: text("q"), workspace: text("workspace"), label: text("label"), parentId: text("parent") };
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(states.length === 0 ? {} : { state: states }),
    ...(query.get("archived") === "true" ? { archived: true } : {}),
  };
}

async function readPages(filter: Filter, pages: number, signal: AbortSignal): Promise<Loaded> {
  const tasks: TaskSummary[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const { data, nextCursor } = await api().tasks.list(
      { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
      { signal },
    );
    tasks.push(...data);
    if (nextCursor === null) return { tasks, next: null };
    cursor = nextCursor;
  }
  return { tasks, next: cursor ?? null };
}

function groupsOf(tasks: readonly TaskSummary[]): readonly (readonly [Need, readonly TaskSummary[]])[] {
  const needs = Object.keys(NEEDS) as Need[];
  return needs
    .map((need) => [need, tasks.filter((task) => needOf(task) === need)] as const)
    .filter(([, members]) => members.length > 0);
}

function useTaskKeys(
  order: readonly TaskSummary[],
  selected: TaskSummary | undefined,
  onChoose: (id: string) => void,
): void {
  const index = selected === undefined ? -1 : order.indexOf(selected);
  const move = (to: number): void => {
    const next = order[Math.max(0, Math.min(order.length - 1, to))];
    if (next !== undefined) look({ sel: next.id });
  };
  useKeys({
    j: () => move(index + 1),
    k: () => move(index - 1),
    ArrowDown: () => move(index + 1),
    ArrowUp: () => move(index - 1),
    Home: () => move(0),
    End: () => move(order.length - 1),
    Enter: () => {
      if (selected !== undefined) go(`/tasks/${selected.id}`);
    },
    x: () => {
      if (selected !== undefined) onChoose(selected.id);
    },
  });
}

function Head({ isBoard }: { isBoard: boolean }): ReactNode {
  const { query } = usePlace();
  const { server } = useFacts();
  const folder = query.get("workspace");
  return (
    <header className="top">
      <h1>Tasks</h1>
      <FilterField label="Filter by name" placeholder="Filter by name" />
      <select
        className="in narrow"
        aria-label="State"
        value={query.get("archived") === "true" ? "archived" : (query.get("state") ?? "")}
        onChange={({ target: { value } }) =>
          look(value === "archived" ? { archived: "true", state: undefined } : { archived: undefined, state: value })
        }
      >
        <option value="">every state</option>
        {TASK_STATES.map((state) => (
          <option key={state} value={state}>
            {state}
          </option>
        ))}
      </select>
      {folder === null ? null : (
        <button type="button" className="tag" onClick={() => look({ workspace: undefined })}>
          in {line(folder)} ×
        </button>
      )}
      <span className="grow" />
      <Segments
        label="How to show them"
        value={isBoard ? "board" : "list"}
        onChoose={(value) => look({ view: value === "list" ? undefined : value })}
        choices={[
          { value: "list", label: "List" },
          { value: "board", label: "Board" },
        ]}
      />
      {server.data?.principal.role === "viewer" ? null : (
        <Link to="/new" className="btn pri">
          <Icon name="plus" /> New task <Kbd>C</Kbd>
        </Link>
      )}
    </header>
  );
}

function Empty({ hasFilter }: { hasFilter: boolean }): ReactNode {
  const { state } = useFacts();
  const inboxes = state.data?.config.inboxes ?? [];
  if (hasFilter) return <p className="empty">No task is like that.</p>;
  return (
    <p className="empty">
      <b>No tasks.</b> Write one{inboxes.length === 0 ? "" : `, or drop a page into ${inboxes.map(line).join(", ")}`}.
    </p>
  );
}

function Legend({ isBoard }: { isBoard: boolean }): ReactNode {
  if (isBoard)
    return (
      <footer className="tk-keys wide fg2 t12">Cards move by what happens to them; they cannot be dragged.</footer>
    );
  return (
    <footer className="tk-keys wide row fg2 t11">
      {(
        [
          ["ok", "verified"],
          ["pass", "passed"],
          ["vac", "passed before any work"],
          ["no", "failed"],
          ["open", "not run"],
        ] as const
      ).map(([pip, text]) => (
        <span key={pip}>
          <span className="pips" aria-hidden="true">
            <i className={pip} />
          </span>{" "}
          {text}
        </span>
      ))}
      <span className="grow" />
      <span aria-hidden="true">
        <Kbd>X</Kbd> select <Kbd>↵</Kbd> open <Kbd>?</Kbd> all keys
      </span>
    </footer>
  );
}
