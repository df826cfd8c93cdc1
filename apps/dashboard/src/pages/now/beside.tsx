/** What goes on without anybody: running, next, ended since, spent today, the record. */
import type { StateAnswer, TaskSummary } from "@heddle/protocol/http";
import { wordsOf } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { Age, Icon, Link, TONE_CLASS } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";
import { age, cost, folderName, number, requests, when } from "../../words/figures.ts";
import { spentText } from "./matters.ts";

const MOST = 8;

export function Beside({ since }: { since: number | undefined }): ReactNode {
  const { state } = useFacts();
  if (state.data === undefined) return <aside className="now-side" aria-label="What goes on" />;
  const { tasks, config, counts } = state.data;
  const running = tasks.filter((task) => task.state === "running" || task.state === "rejected");
  const next = tasks.filter((task) => (task.state === "waiting" || task.state === "pending") && !isAsking(task));
  return (
    <aside className="now-side" aria-label="What goes on">
      <h2 className="band">
        Running{" "}
        <span>
          {counts.running ?? 0} of {config.concurrency} places
        </span>
      </h2>
      <ul className="runs">
        {running.slice(0, MOST).map((task) => (
          <Running key={task.id} task={task} />
        ))}
        {running.length === 0 ? <li className="meta">nothing runs</li> : null}
      </ul>
      {next.length === 0 ? null : (
        <>
          <h2 className="band">Next</h2>
          <ul className="nexts">
            {next.slice(0, MOST).map((task) => (
              <li key={task.id}>
                <Icon name={wordsOf(task).glyph} tone="fg2" />
                <Link to={`/tasks/${task.id}`} className="cut">
                  {line(task.name)}
                </Link>
                <span className="fg2 cut">
                  <NextText task={task} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      <Ended tasks={tasks} since={since} />
      <Totals state={state.data} />
    </aside>
  );
}

function isAsking(task: TaskSummary): boolean {
  return wordsOf(task).tone === "yours";
}

function Running({ task }: { task: TaskSummary }): ReactNode {
  return (
    <li>
      <p className="row">
        <Icon name="running" tone="fg1" />
        <Link to={`/tasks/${task.id}`} className="grow cut">
          {line(task.name)}
        </Link>
        <span className="fg2 t12">{line(folderName(task.workspace))}</span>
      </p>
      {task.activity?.text === undefined ? null : (
        <p className="last cut">
          <code>{line(task.activity.text)}</code>
        </p>
      )}
      <p className="meta">
        {task.activity === undefined ? "last sign " : task.activity.lastOutputAt === undefined ? "for " : "output "}
        <Age
          at={task.activity?.lastOutputAt ?? task.activity?.since ?? task.updatedAt}
          suffix={task.activity !== undefined && task.activity.lastOutputAt === undefined ? "" : " ago"}
        />{" "}
        · {spentText(task)}
      </p>
    </li>
  );
}

function NextText({ task }: { task: TaskSummary }): ReactNode {
  const now = useNow();
  if (task.nextAt !== undefined && task.nextAt > now.at)
    return task.nextAt - now.at < 3_600_000 ? `again in ${age(task.nextAt - now.at)}` : when(task.nextAt, now.at);
  return task.wait === undefined ? "in the queue" : line(task.wait.message);
}

function Ended({ tasks, since }: { tasks: readonly TaskSummary[]; since: number | undefined }): ReactNode {
  const now = useNow();
  const ended = tasks
    .filter((task) => task.state === "verified" || task.state === "cancelled")
    .filter((task) => since === undefined || task.updatedAt > since)
    .toSorted((a, b) => b.updatedAt - a.updatedAt);
  if (ended.length === 0) return null;
  return (
    <>
      <h2 className="band">While you were away</h2>
      <ul className="nexts">
        {ended.slice(0, MOST).map((task) => {
          const words = wordsOf(task);
          return (
            <li key={task.id}>
              <Icon name={words.glyph} tone={TONE_CLASS[words.tone]} />
              <Link to={`/tasks/${task.id}`} className="cut">
                {line(task.name)}
              </Link>
              <span className="fg2">
                {words.word}, {when(task.updatedAt, now.at)}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Totals({ state }: { state: StateAnswer }): ReactNode {
  const known = state.usage.today.reduce((sum, { costUsd }) => sum + costUsd, 0);
  const unpriced = state.usage.today.reduce((sum, entry) => sum + entry.unpriced, 0);
  return (
    <dl className="facts">
      <div>
        <dt>Spent today</dt>
        <dd>
          {unpriced > 0 && known === 0 ? "unknown" : cost({ known, isPartial: false })}
          {unpriced === 0 ? null : <span className="say"> + {requests(unpriced)}</span>}
        </dd>
      </div>
      <div>
        <dt>Record</dt>
        <dd>
          {number(state.position)} events,{" "}
          <span className="fg2">
            <Link to="/evidence">checked in Evidence</Link>
          </span>
        </dd>
      </div>
    </dl>
  );
}
