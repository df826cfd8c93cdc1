/** The middle of a run: what has changed, the step that is looked at, what the harness said, the event as it is stored. */
import type { StreamedEvent, TaskAttempt, Turn } from "@heddle/protocol/http";
import { PROMPT_WORDS } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Segments, Waiting } from "../../parts/base.tsx";
import type { Comment } from "../../parts/diff.tsx";
import { look } from "../../router.ts";
import { shown } from "../../text/shown.ts";
import { clock } from "../../words/figures.ts";
import { Changes, type Scope } from "./changes.tsx";
import { StepDetail } from "./step-detail.tsx";
import { TurnDetail } from "./turn-detail.tsx";
import type { Grown } from "./folded.ts";
import { CheckLine } from "./check-line.tsx";
import type { Row } from "./steps.ts";

export type Tab = "changes" | "step" | "prompt" | "raw";

interface MiddleProps {
  readonly taskId: string | undefined;
  readonly threadId: string | undefined;
  readonly tab: Tab;
  readonly scope: Scope;
  readonly row: Row | undefined;
  readonly grown: Grown | undefined;
  readonly turns: readonly Turn[];
  readonly attempts: readonly TaskAttempt[];
  readonly log: readonly StreamedEvent[];
  readonly sinceChecks: ReadonlySet<string>;
  readonly hasChecks: boolean;
  readonly comments: readonly Comment[];
  readonly onComment: ((comment: Comment) => void) | undefined;
  readonly steer: ReactNode;
}

const TABS: readonly (readonly [Tab, string])[] = [
  ["changes", "Changes"],
  ["step", "Step"],
  ["prompt", "Prompt"],
  ["raw", "Raw"],
];

export function Middle(props: MiddleProps): ReactNode {
  const { tab, scope, turns, hasChecks, steer } = props;
  const [last] = turns;
  return (
    <section className="changes" aria-label="Changes and details">
      <header className="pane-top">
        <div className="tabs" role="tablist" aria-label="What to look at">
          {TABS.map(([value, label]) => (
            <button
              key={value}
              type="button"
              role="tab"
              aria-selected={value === tab}
              onClick={() => look({ tab: value === "changes" ? undefined : value })}
            >
              {label}
            </button>
          ))}
        </div>
        <span className="grow" />
        {tab !== "changes" ? null : (
          <Segments
            label="Changes since"
            isSmall
            value={scope}
            onChoose={(value) => look({ scope: value === "start" ? undefined : value })}
            choices={[
              { value: "start" as Scope, label: "Since start" },
              ...(last === undefined ? [] : [{ value: `turn:${last.id}` as Scope, label: `Turn ${turns.length}` }]),
              ...(hasChecks ? [{ value: "checks" as Scope, label: "Since checks" }] : []),
            ]}
          />
        )}
      </header>
      <div className="pane-body" role="tabpanel" aria-label={TABS.find(([value]) => value === tab)?.[1]}>
        <Body {...props} />
      </div>
      {steer}
    </section>
  );
}

function Body(props: MiddleProps): ReactNode {
  const { tab, taskId, threadId, scope, row, grown, attempts, sinceChecks, comments, onComment } = props;
  switch (tab) {
    case "changes":
      return <Changes {...{ taskId, threadId, scope, sinceChecks, comments, onComment }} />;
    case "step":
      return <Step row={row} threadId={threadId} grown={grown} mayAct={onComment !== undefined} />;
    case "prompt":
      return <Prompts attempts={attempts} turns={props.turns} />;
    case "raw":
      return <Raw row={row} threadId={threadId} log={props.log} />;
  }
}

function Step({
  row,
  threadId,
  grown,
  mayAct,
}: {
  row: Row | undefined;
  threadId: string | undefined;
  grown: Grown | undefined;
  mayAct: boolean;
}): ReactNode {
  if (row === undefined || threadId === undefined)
    return <p className="empty">Choose a step on the left; j and k move.</p>;
  if (row.kind === "item") return <StepDetail key={row.key} threadId={threadId} entry={row.entry} grown={grown} />;
  if (row.kind === "turn")
    return (
      <TurnDetail turn={row.turn} number={row.number} mayFork={mayAct}>
        <RowDetail row={row} />
      </TurnDetail>
    );
  return <RowDetail row={row} />;
}

/** Of all that is no step of the agent. */
export function RowDetail({ row }: { row: Exclude<Row, { kind: "item" }> }): ReactNode {
  switch (row.kind) {
    case "claim":
      return (
        <p className="pre say step-detail">
          {row.claim.summary === "" ? "It said nothing more." : shown(row.claim.summary)}
        </p>
      );
    case "checks":
      return (
        <ul className="checks step-detail">
          {row.checks.results.map((result) => (
            <CheckLine key={result.name} result={result} isProven={false} />
          ))}
        </ul>
      );
    case "turn":
      return (
        <p className="pre step-detail">
          {row.turn.input.map((part) => (part.type === "text" ? shown(part.text) : "[image]")).join("\n")}
        </p>
      );
    case "stall":
      return <p className="pre step-detail">{shown(row.stall.message)}</p>;
    case "note":
      return <p className="pre step-detail">{shown(row.text)}</p>;
  }
}

function Prompts({ attempts, turns }: { attempts: readonly TaskAttempt[]; turns: readonly Turn[] }): ReactNode {
  const prompts = attempts.flatMap(({ attempt, prompts: all }) => all.map((prompt) => ({ attempt, ...prompt })));
  if (prompts.length === 0)
    return turns.toReversed().map((turn) => (
      <article key={turn.id} className="step-detail">
        <h3 className="h">{clock(turn.admittedAt)}</h3>
        <p className="pre">
          {turn.input.map((part) => (part.type === "text" ? shown(part.text) : "[image]")).join("\n")}
        </p>
      </article>
    ));
  return prompts.map(({ attempt, round, at, why, text }) => (
    <article key={`${attempt}:${round}`} className="step-detail">
      <h3 className="h">
        Turn {round}{" "}
        <span className="fg2">
          {PROMPT_WORDS[why]}, {clock(at)}, attempt {attempt}
        </span>
      </h3>
      <p className="pre">{shown(text)}</p>
    </article>
  ));
}

function Raw({
  row,
  threadId,
  log,
}: {
  row: Row | undefined;
  threadId: string | undefined;
  log: readonly StreamedEvent[];
}): ReactNode {
  const seq = row?.kind === "item" ? row.entry.seq : row?.kind === "turn" ? row.turn.seq : undefined;
  const stored = log.find(({ id }) => id === row?.key);
  if (stored !== undefined) return <Event event={stored} />;
  if (threadId === undefined || seq === undefined) return <p className="empty">Choose a step on the left.</p>;
  return <ReadRaw key={seq} threadId={threadId} seq={seq} />;
}

function ReadRaw({ threadId, seq }: { threadId: string; seq: number }): ReactNode {
  const { data } = useResource(`raw:${threadId}:${seq}`, async (signal) => {
    const own = new AbortController();
    for await (const heard of api().follow({
      threadId,
      after: seq - 1,
      live: false,
      signal: AbortSignal.any([signal, own.signal]),
    })) {
      if (heard.kind === "event") return heard.event;
    }
    return undefined;
  });
  return data === undefined ? <Waiting /> : <Event event={data} />;
}

function Event({ event }: { event: StreamedEvent }): ReactNode {
  return (
    <div className="step-detail">
      <dl className="facts">
        <div>
          <dt>type</dt>
          <dd>
            <code>{event.body.type}</code>
          </dd>
        </div>
        <div>
          <dt>at</dt>
          <dd>{clock(event.at, "ms")}</dd>
        </div>
        <div>
          <dt>author</dt>
          <dd>{shown(event.author)}</dd>
        </div>
        <div>
          <dt>hash</dt>
          <dd>
            <code className="wrap">{event.hash}</code>
          </dd>
        </div>
        <div>
          <dt>before it</dt>
          <dd>
            <code className="wrap">{event.prevHash}</code>
          </dd>
        </div>
        <div>
          <dt>event</dt>
          <dd>
            {event.seq} of its stream, {event.position} of the record
          </dd>
        </div>
      </dl>
      <pre className="out">{shown(JSON.stringify(event.body, null, 2))}</pre>
    </div>
  );
}
