/** A run, drawn: the state in a sentence, where the time went, and three columns that answer for each other. */
import type { Approval, StreamedEvent, Task, TaskAttempt } from "@heddle/protocol/http";
import { useMemo, useState, type ReactNode } from "react";
import { useNow } from "../../live/link.ts";
import { Problem } from "../../parts/base.tsx";
import type { Comment } from "../../parts/diff.tsx";
import { useKeys } from "../../parts/keys.ts";
import { look, usePlace } from "../../router.ts";

import type { Scope } from "./changes.tsx";
import { Cloth } from "./cloth.tsx";
import { Dock } from "./dock.tsx";
import { isTaken } from "./doings.ts";
import { lanesOf } from "./lanes.ts";
import { Middle, type Tab } from "./middle.tsx";
import { rowsOf } from "./steps.ts";
import { StepsPane } from "./steps-pane.tsx";
import { Steer } from "./steer.tsx";
import type { ThreadHandle } from "./thread-store.ts";

export type Pane = "steps" | "changes" | "contract";

interface RunViewProps {
  readonly name: string;
  readonly task: Task | undefined;
  readonly thread: ThreadHandle;
  readonly log: readonly StreamedEvent[];
  readonly attempts: readonly TaskAttempt[];
  readonly approvals: readonly Approval[];
  readonly header: ReactNode;
  readonly right: ReactNode;
  readonly rightName: string;
  readonly isReadOnly: boolean;
}

const NONE: readonly StreamedEvent[] = [];

export function RunView(props: RunViewProps): ReactNode {
  const { task, thread, attempts, approvals, header, right, isReadOnly } = props;
  const log = props.log.length === 0 ? NONE : props.log;
  const { query } = usePlace();
  const now = useNow();
  const { items, turns } = thread;
  const rows = useMemo(() => rowsOf({ items, turns, log, attempts }), [items, turns, log, attempts]);
  const isLive = turns.some(({ status }) => status === "open") || approvals.length > 0;
  const second = isLive ? Math.floor(now.at / 1000) : 0;
  const lanes = useMemo(
    () => lanesOf({ items, turns, log, now: isLive ? now.at : 0, askedAt: approvals[0]?.askedAt }),
    // oxlint-disable-next-line react-hooks/exhaustive-deps
    [items, turns, log, approvals, second],
  );
  const selected = query.get("item") ?? undefined;
  const pane = (query.get("pane") ?? "steps") as Pane;
  const [comments, setComments] = useState<readonly Comment[]>([]);
  const select = (key: string): void => look({ item: key, tab: "step" });
  const openTurn = turns.find(({ status }) => status === "open");
  const checkedAt = task?.lastCheck?.at;
  const since = new Set(
    checkedAt === undefined ? [] : items.filter(({ startedAt }) => startedAt > checkedAt).map(({ item }) => item.id),
  );
  useKeys({
    "1": () => look({ pane: undefined }),
    "2": () => look({ pane: "changes" }),
    "3": () => look({ pane: "contract" }),
  });
  return (
    <main className={`run pane-${pane}`} aria-label={`Run: ${props.name}`} id="main">
      <header className="run-top">
        {header}
        {lanes === undefined ? null : <Cloth lanes={lanes} onPick={select} />}
        <PaneTabs
          pane={pane}
          rightName={props.rightName}
          isVerified={task?.state === "verified"}
          hasTask={task !== undefined}
        />
      </header>
      {thread.error === undefined ? null : <Problem error={thread.error} />}
      <div className="run-cols">
        <StepsPane
          taskId={isReadOnly ? undefined : task?.id}
          rows={rows}
          turnCount={turns.length}
          selected={selected}
          onSelect={select}
          older={thread.older}
          onOlder={thread.loadOlder}
          leftOut={thread.leftOut}
          isLoading={thread.isLoading && task?.threadId !== undefined}
          dock={<Dock approvals={approvals} />}
        />
        <Middle
          taskId={task?.id}
          threadId={thread.detail?.id}
          tab={(query.get("tab") ?? "changes") as Tab}
          scope={(query.get("scope") ?? "start") as Scope}
          row={rows.find(({ key }) => key === selected)}
          grown={selected === undefined ? undefined : thread.grown.get(selected)}
          turns={turns}
          attempts={attempts}
          log={log}
          sinceChecks={since}
          hasChecks={checkedAt !== undefined}
          comments={comments}
          onComment={isReadOnly ? undefined : (comment) => setComments([...comments, comment])}
          steer={
            thread.detail === undefined || isReadOnly ? null : (
              <Steer
                thread={thread.detail}
                openTurn={openTurn}
                comments={comments}
                onSent={() => setComments([])}
                mayStart={task === undefined || task.state === "paused"}
                isTaken={task !== undefined && isTaken(task)}
              />
            )
          }
        />
        {right}
      </div>
    </main>
  );
}

interface PaneTabsProps {
  readonly pane: Pane;
  readonly rightName: string;
  readonly isVerified: boolean;
  readonly hasTask: boolean;
}

function PaneTabs({ pane, rightName, isVerified, hasTask }: PaneTabsProps): ReactNode {
  const tabs: readonly (readonly [Pane, string])[] = [
    ["steps", "Steps"],
    ["changes", "Changes"],
    ["contract", rightName],
  ];
  return (
    <nav className="run-tabs" aria-label="Parts of the run">
      {tabs.map(([value, label]) => (
        <button
          key={value}
          type="button"
          aria-current={value === pane ? "true" : undefined}
          onClick={() => look({ pane: value === "steps" ? undefined : value })}
        >
          {label}{" "}
          {value === "contract" && hasTask ? (
            <span className={isVerified ? "ok" : "say"}>{isVerified ? "verified" : "not verified"}</span>
          ) : null}
        </button>
      ))}
    </nav>
  );
}
