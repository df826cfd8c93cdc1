/** The page of a thread: the page of a run without a contract; in its place what the thread is. */
import type { ThreadDetail, Turn } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { Icon, Link } from "../../parts/base.tsx";
import { useTitle } from "../../shell.tsx";
import { brief, line } from "../../text/shown.ts";
import { cost, folderName, tokens, when } from "../../words/figures.ts";
import { questionSentence } from "../../words/questions.ts";
import { useNow } from "../../live/link.ts";
import { RunActs } from "./acts.tsx";
import { Processes } from "./processes.tsx";
import { RecordPart } from "./record.tsx";
import { NotThere } from "./task-page.tsx";
import { useThread } from "./thread-store.ts";
import { RunView } from "./view.tsx";

export function ThreadPage({ threadId }: { threadId: string }): ReactNode {
  const thread = useThread(threadId);
  const { approvals, server } = useFacts();
  const asked = (approvals.data ?? []).filter((approval) => approval.threadId === threadId);
  const openTurn = thread.turns.find(({ status }) => status === "open");
  const name = thread.detail === undefined ? "Thread" : threadName(thread.detail);
  const word = asked.length > 0 ? "Waits for you" : openTurn === undefined ? "Idle" : "Running";
  useTitle(`${word}: ${name}`);
  if (thread.detail === undefined) return <NotThere error={thread.error} reload={() => location.reload()} />;
  return (
    <RunView
      name={name}
      task={undefined}
      thread={thread}
      log={[]}
      attempts={[]}
      approvals={asked}
      isReadOnly={server.data?.principal.role === "viewer"}
      rightName="Facts"
      header={
        <>
          <div className="row">
            <Link to="/threads" className="phone-only" label="Back to Threads">
              <Icon name="back" tone="fg2" />
            </Link>
            <p className="crumb">
              <Link to="/threads">Threads</Link>
              <span>/</span>
              {line(folderName(thread.detail.workspace))}
              <span>/</span>
            </p>
            <h1 className="cut">{name}</h1>
            <span className="grow" />
            <RunActs task={undefined} thread={thread.detail} openTurn={openTurn} onDone={thread.reload} />
          </div>
          <p className="state">
            <span className={asked.length > 0 ? "word you" : "word fg1"}>
              <Icon name={asked.length > 0 ? "ask" : openTurn === undefined ? "thread" : "running"} />
              {word}
            </span>
            <span className="q1">
              {asked[0] === undefined ? endText(thread.turns[0]) : questionSentence(asked[0].question)}
            </span>
          </p>
        </>
      }
      right={<Facts thread={thread.detail} turns={thread.turns} />}
    />
  );
}

export function threadName({
  name,
  title,
  preview,
  id,
}: Pick<ThreadDetail, "name" | "title" | "preview" | "id">): string {
  return brief(name ?? title ?? preview ?? `thread ${id.slice(0, 8)}`, 120);
}

function endText(turn: Turn | undefined): string {
  if (turn === undefined) return "no turn yet";
  if (turn.status === "open") return "";
  return turn.failure === undefined
    ? `its last turn ${turn.status}`
    : `its last turn ${turn.status}: ${line(turn.failure.message)}`;
}

function Facts({ thread, turns }: { thread: ThreadDetail; turns: readonly Turn[] }): ReactNode {
  const now = useNow();
  const [last] = turns;
  const used = turns.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0);
  const known = turns.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
  const rows: readonly (readonly [string, ReactNode])[] = [
    [
      "folder",
      <code key="f" className="wrap">
        {line(thread.workspace)}
      </code>,
    ],
    ["began", `${when(thread.createdAt, now.at)}, by ${line(thread.origin)}`],
    ["turns", `${thread.turnCount}`],
    [
      "used",
      `${tokens(used)} tokens, ${cost({ known, isPartial: turns.some(({ costUsd }) => costUsd === undefined) })}`,
    ],
    ["model", last === undefined ? "none yet" : line(`${last.settings.provider} ${last.settings.model}`)],
    [
      "sandbox",
      last === undefined
        ? "none yet"
        : `${line(last.settings.sandboxMode)}${last.sandboxLevel === undefined ? "" : `, held by ${last.sandboxLevel}`}`,
    ],
    ...(thread.forkedFrom === undefined
      ? []
      : [
          [
            "fork of",
            <Link key="k" to={`/threads/${thread.forkedFrom.threadId}`} className="lk">
              {thread.forkedFrom.threadId.slice(0, 8)}
            </Link>,
          ] as const,
        ]),
  ];
  return (
    <aside className="contract" aria-label="Facts">
      <section>
        <h2 className="ch">This thread</h2>
        <p className="meta">A thread has no contract: nothing here is verified.</p>
        <dl className="facts">
          {rows.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </section>
      <Processes threadId={thread.id} isOpen={turns.some(({ status }) => status === "open")} />
      <RecordPart threadId={thread.id} seq={thread.seq} />
    </aside>
  );
}
