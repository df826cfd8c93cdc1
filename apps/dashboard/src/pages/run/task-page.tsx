/** The page of a task: is it done, how do I know, what does it do now, what do I have to decide. */
import type { Approval, StreamedEvent, Task } from "@heddle/protocol/http";
import { standingOf, wordsOf } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Age, Icon, Link, Problem, TONE_CLASS, Waiting } from "../../parts/base.tsx";
import { look, usePlace } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { line } from "../../text/shown.ts";
import { folderName, fullTime } from "../../words/figures.ts";
import { questionSentence } from "../../words/questions.ts";
import { RunActs } from "./acts.tsx";
import { Contract } from "./contract.tsx";
import { Processes } from "./processes.tsx";
import { RecordPart } from "./record.tsx";
import { useThread } from "./thread-store.ts";
import { RunView } from "./view.tsx";

/** A log that is longer is read from its end: what is older is in Evidence. */
const LOG_PAGES = 20;
const LOG_LIMIT = 100;

export function TaskPage({ taskId }: { taskId: string }): ReactNode {
  const on = (event: StreamedEvent): boolean => event.taskId === taskId;
  const task = useResource(`task:${taskId}`, (signal) => api().tasks.read(taskId, { signal }), { on });
  const attempts = useResource(
    `attempts:${taskId}`,
    async (signal) => (await api().tasks.attempts(taskId, { signal })).data,
    { on },
  );
  const log = useResource(`log:${taskId}`, (signal) => readLog(taskId, signal), { on });
  const { approvals, server } = useFacts();
  const { query } = usePlace();
  const attempt = Number(query.get("attempt") ?? 0);
  const chosen = attempts.data?.find((one) => one.attempt === attempt);
  const threadId = chosen?.threadId ?? task.data?.threadId;
  const thread = useThread(threadId);
  const openTurn = thread.turns.find(({ status }) => status === "open");
  const asked = (approvals.data ?? []).filter((approval) => approval.threadId === threadId);
  const words = task.data === undefined ? "Task" : titleOf(task.data, asked);
  useTitle(words);
  if (task.data === undefined) return <NotThere error={task.error} reload={task.reload} />;
  const isOld = chosen !== undefined && chosen.attempt !== task.data.attempt;
  return (
    <RunView
      name={line(task.data.spec.name)}
      task={task.data}
      thread={thread}
      log={log.data ?? []}
      attempts={attempts.data ?? []}
      approvals={asked}
      isReadOnly={isOld || server.data?.principal.role === "viewer"}
      rightName="Contract"
      header={
        <TaskHeader
          task={task.data}
          approvals={asked}
          turnCount={thread.turns.length}
          attempt={chosen?.attempt ?? task.data.attempt}
          acts={
            <RunActs
              task={isOld ? undefined : task.data}
              thread={thread.detail}
              openTurn={openTurn}
              onDone={task.reload}
            />
          }
        />
      }
      right={
        <Contract
          task={task.data}
          items={thread.items}
          turns={thread.turns}
          processes={threadId === undefined ? null : <Processes threadId={threadId} isOpen={openTurn !== undefined} />}
          record={<RecordPart threadId={thread.detail?.id} seq={thread.detail?.seq} taskId={taskId} />}
        />
      }
    />
  );
}

async function readLog(taskId: string, signal: AbortSignal): Promise<readonly StreamedEvent[]> {
  const events: StreamedEvent[] = [];
  let after = 0;
  for (let page = 0; page < LOG_PAGES; page += 1) {
    const { data, nextAfter } = await api().tasks.log(taskId, { after, limit: LOG_LIMIT }, { signal });
    events.push(...data);
    if (nextAfter === null) break;
    after = nextAfter;
  }
  return events;
}

export function NotThere({ error, reload }: { error: Error | undefined; reload: () => void }): ReactNode {
  const isGone = error !== undefined && "status" in error && error.status === 404;
  return (
    <main className="run lost" aria-label="Run" id="main">
      {error === undefined ? <Waiting lines={8} /> : null}
      {error !== undefined && !isGone ? <Problem error={error} onRetry={reload} /> : null}
      {isGone ? (
        <>
          <h1>It is not here</h1>
          <p className="fg2">
            {line(error.message)}. If it was deleted, what it said is gone; that it was there is on record, in{" "}
            <Link to="/evidence" className="lk">
              Evidence
            </Link>
            .
          </p>
        </>
      ) : null}
    </main>
  );
}

function titleOf(task: Task, asked: readonly Approval[]): string {
  const { word } = asked.length > 0 ? { word: "Waits for you" } : wordsOf(task);
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}: ${line(task.spec.name)}`;
}

/** An older attempt is another thread, to be read. */
function Attempts({ attempt, all }: { attempt: number; all: number }): ReactNode {
  if (all < 2) return `attempt ${attempt}`;
  return (
    <>
      attempt{" "}
      {Array.from({ length: all }, (_, index) => index + 1).map((one) => (
        <button
          key={one}
          type="button"
          className={one === attempt ? "att now" : "att"}
          aria-pressed={one === attempt}
          aria-label={`Attempt ${one}`}
          onClick={() => look({ attempt: one === all ? undefined : String(one), item: undefined })}
        >
          {one}
        </button>
      ))}
    </>
  );
}

interface HeaderProps {
  readonly task: Task;
  readonly approvals: readonly Approval[];
  readonly turnCount: number;
  readonly attempt: number;
  readonly acts: ReactNode;
}

function TaskHeader({ task, approvals, turnCount, attempt, acts }: HeaderProps): ReactNode {
  const { spec } = task;
  return (
    <>
      <div className="row">
        <Link to="/tasks" className="phone-only" label="Back to Tasks">
          <Icon name="back" tone="fg2" />
        </Link>
        <p className="crumb">
          <Link to="/tasks">Tasks</Link>
          <span>/</span>
          <Link to={`/tasks?workspace=${encodeURIComponent(spec.workspace)}`}>{line(folderName(spec.workspace))}</Link>
          <span>/</span>
        </p>
        <h1 className="cut">{line(spec.name)}</h1>
        {spec.labels.map((label) => (
          <span className="tag wide" key={label}>
            {line(label)}
          </span>
        ))}
        <span className="grow" />
        {acts}
      </div>
      <StateLine task={task} approvals={approvals} turnCount={turnCount} attempt={attempt} />
    </>
  );
}

function StateLine({ task, approvals, turnCount, attempt }: Omit<HeaderProps, "acts">): ReactNode {
  const [asked] = approvals;
  const words = asked === undefined ? wordsOf(task) : { glyph: "ask", tone: "yours" as const, word: "Waits for you" };
  const text = asked === undefined ? line(standingOf(task, fullTime)) : questionSentence(asked.question);
  return (
    <p className="state">
      <span className={`word ${TONE_CLASS[words.tone]}`}>
        <Icon name={words.glyph} />
        {words.word.charAt(0).toUpperCase()}
        {words.word.slice(1)}
      </span>
      <span className="q1">{text}</span>
      <span className="p1">
        {asked === undefined ? text : "asked "}
        {asked === undefined ? null : <Age at={asked.askedAt} suffix=" ago, nothing else goes on" />}
      </span>
      <span className="grow" />
      <span className="wide fg2 nowrap">
        <Attempts attempt={attempt} all={task.attempt} /> · {turnCount} {turnCount === 1 ? "turn" : "turns"} · last sign{" "}
        <Age at={task.updatedAt} suffix=" ago" />
      </span>
    </p>
  );
}
