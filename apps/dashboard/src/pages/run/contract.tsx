/** What the agent says beside what Heddle found, and how old that finding is: the reason to believe it or not. */
import type { Task, Turn } from "@heddle/protocol/http";
import { failingOf, wordsOf } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { useNow } from "../../live/link.ts";
import { Icon, TONE_CLASS } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";
import { clock, when } from "../../words/figures.ts";
import { Budget } from "./budget.tsx";
import { CheckLine } from "./check-line.tsx";
import { sinceChecks, type Entry, type SinceChecks } from "./steps.ts";

interface ContractProps {
  readonly task: Task;
  readonly items: readonly Entry[];
  readonly turns: readonly Turn[];
  readonly record: ReactNode;
  /** What runs now; absent: that is not known here. */
  readonly processes?: ReactNode;
}

export function Contract({ task, items, turns, record, processes }: ContractProps): ReactNode {
  const since = task.lastCheck === undefined ? undefined : sinceChecks(items, task.lastCheck.at);
  const openTurn = turns.find(({ status }) => status === "open");
  return (
    <aside className="contract" aria-label="Contract">
      <Verdict task={task} since={since} />
      <Found task={task} since={since} />
      <Budget task={task} openTurn={openTurn} />
      {processes}
      <SandboxPart task={task} turn={turns[0]} />
      <Where task={task} />
      {record}
    </aside>
  );
}

function Verdict({ task, since }: { task: Task; since: SinceChecks | undefined }): ReactNode {
  const isProven = task.state === "verified";
  const isRefused = task.state === "failed";
  const words = wordsOf(task);
  const glyph = isProven ? "verified" : isRefused ? "failed" : "claimed";
  const tone = isProven ? "ok" : isRefused ? "no" : "say";
  return (
    <section className="c-verdict">
      <p className="big">
        <Icon name={glyph} tone={tone} />
        {isProven ? "Verified" : isRefused ? "Failed" : "Not verified"}
        {isProven ? null : <span className={`t12 ${TONE_CLASS[words.tone]}`}>{words.word}</span>}
      </p>
      <p className="fg1 t12">{verdictText(task, since)}</p>
    </section>
  );
}

function verdictText(task: Task, since: SinceChecks | undefined): string {
  const { lastCheck, spec } = task;
  if (task.state === "verified") {
    const count = lastCheck?.results.length ?? 0;
    return `${count} of ${count} ${count === 1 ? "check" : "checks"} passed${task.merged === undefined ? "" : `, merged as ${task.merged.how}`}${task.undone === undefined ? "." : "; its workspace has been reverted since."}`;
  }
  if (spec.checks.length === 0) return "It has no checks: nothing can verify it, whatever is claimed.";
  if (lastCheck === undefined)
    return task.claim === undefined
      ? "Nothing was claimed and no check has run yet."
      : "Claimed; no check has run yet.";
  const failing = failingOf(task).map(line);
  const found =
    lastCheck.review !== undefined
      ? "Its checks passed, and it is put to you."
      : failing.length === 0
        ? "The checks passed."
        : `Rejected: ${failing.join(", ")}.`;
  return [found, staleText(since)].filter(Boolean).join(" ");
}

/** A finding is as old as its work. */
function staleText(since: SinceChecks | undefined): string {
  if (since === undefined) return "";
  const { edits, commands, isRunning } = since;
  if (edits > 0)
    return `${edits} ${edits === 1 ? "edit" : "edits"} since the checks last ran, so what they found is old.`;
  if (isRunning) return "A command has been running since; it may have written.";
  return commands > 0
    ? `${commands} ${commands === 1 ? "command" : "commands"} since the checks last ran; they may have written.`
    : "";
}

function Found({ task, since }: { task: Task; since: SinceChecks | undefined }): ReactNode {
  const { claim, lastCheck, checking, spec } = task;
  const now = useNow();
  return (
    <section>
      <h2 className="ch">{claim?.by === "user" ? "A person says" : "The agent says"}</h2>
      {claim === undefined ? (
        <p className="meta">nothing yet</p>
      ) : (
        <p className="says">
          {claim.summary === "" ? "that it is done, without a word more" : `“${line(claim.summary)}”`}
        </p>
      )}
      <h2 className="ch">
        Heddle found{" "}
        {lastCheck === undefined ? null : (
          <span>
            {when(lastCheck.at, now.at)}
            {since !== undefined && since.edits > 0 ? ", before the last edits" : ""}
          </span>
        )}
      </h2>
      {checking === undefined ? null : (
        <p className="meta">
          <Icon name="running" /> runs {line(checking.name)} since {clock(checking.since)}
        </p>
      )}
      {lastCheck === undefined ? <Pending checks={spec.checks} /> : <Results task={task} />}
      {spec.protect.length === 0 ? null : (
        <p className="meta pt">
          Protected:{" "}
          {spec.protect.map((glob) => (
            <code key={glob}>{line(glob)} </code>
          ))}
          {lastCheck === undefined ? "" : lastCheck.violations.length === 0 ? "untouched at the checks" : ""}
        </p>
      )}
      {spec.steps.length === 0 ? null : (
        <p className="meta pt">
          Steps said done: {task.stepsDone.length} of {spec.steps.length}
        </p>
      )}
    </section>
  );
}

function Pending({ checks }: { checks: Task["spec"]["checks"] }): ReactNode {
  if (checks.length === 0) return <p className="meta">nothing: there are no checks</p>;
  return (
    <ul className="checks">
      {checks.map((check, index) => (
        <li key={index}>
          <Icon name="queued" tone="fg2" />
          <div className="grow">
            <p>{line(check.name ?? check.kind)}</p>
            <p className="meta">not run yet</p>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Results({ task }: { task: Task }): ReactNode {
  const { lastCheck } = task;
  if (lastCheck === undefined) return null;
  const { results, violations, opinion, review } = lastCheck;
  return (
    <>
      {violations.map(({ kind, message }) => (
        <p className="violation" key={message}>
          <Icon name="failed" tone="no" /> <b className="no">Violation:</b> {line(message)}{" "}
          <span className="fg2">({kind})</span>
        </p>
      ))}
      <ul className="checks">
        {results.map((result) => (
          <CheckLine key={result.name} result={result} isProven={task.state === "verified"} />
        ))}
      </ul>
      {opinion === undefined ? null : (
        <p className="meta pt">
          Second opinion of {line(opinion.model)}: {opinion.accepts ? "agrees" : <b className="no">rejects</b>}, “
          {line(opinion.reason)}”
        </p>
      )}
      {review?.reasons.map(({ kind, message, files }) => (
        <p className="meta pt say" key={kind + message}>
          {line(message)} {files.slice(0, 6).map(line).join(", ")}
        </p>
      ))}
    </>
  );
}

function SandboxPart({ task, turn }: { task: Task; turn: Turn | undefined }): ReactNode {
  const { spec } = task;
  const network = Array.isArray(spec.network)
    ? `network to ${spec.network.map(line).join(", ")}`
    : spec.network
      ? "network"
      : "no network";
  const model = turn?.settings.model ?? spec.model;
  return (
    <section>
      <h2 className="ch">Sandbox</h2>
      <p className="t12 fg1">
        {line(spec.envelope ?? spec.sandbox)}
        {turn?.sandboxLevel === undefined ? "" : `, held by ${turn.sandboxLevel}`}
        <br />
        {network} · asks {spec.approval === "never" ? "nobody" : line(spec.approval)}
        {model === undefined ? "" : ` · ${line(model)}`}
        {turn?.runner === undefined || turn.runner === "embedded" ? "" : ` · run by ${line(turn.runner)}`}
      </p>
      {task.hops === undefined ? null : (
        <p className="t12 fg1">
          {task.hops.taken} hops taken
          {task.hops.refused === undefined ? "" : `; the next was refused: ${line(task.hops.refused)}`}
        </p>
      )}
    </section>
  );
}

function Where({ task }: { task: Task }): ReactNode {
  const { folder, spec, merged } = task;
  return (
    <section>
      <h2 className="ch">Where</h2>
      <p className="t12 fg1 wrap">
        <code>{line(folder ?? spec.workspace)}</code>
        {folder === undefined || folder === spec.workspace ? null : (
          <>
            <br />a tree of its own, of <code>{line(spec.workspace)}</code>
          </>
        )}
        {merged === undefined ? null : (
          <>
            <br />
            merged as {merged.how}: <code>{line(merged.ref)}</code>
          </>
        )}
      </p>
    </section>
  );
}
