/** A run in one flow: what is proven first, beside it where the time went, every step with all of it, and the changes. */
import type { StoredRun } from "@heddle/protocol/http";
import { standingOf, wordsOf } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { Icon, TONE_CLASS } from "../parts/base.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { Still } from "../parts/still.ts";
import { Files, ofTask, ofThread, type Shown } from "../pages/run/changes.tsx";
import { Cloth } from "../pages/run/cloth.tsx";
import { Contract } from "../pages/run/contract.tsx";
import { lanesOf } from "../pages/run/lanes.ts";
import { RowDetail } from "../pages/run/middle.tsx";
import { Detail } from "../pages/run/step-detail.tsx";
import { StepRow, TurnLine } from "../pages/run/step-row.tsx";
import { rowsOf, type Row } from "../pages/run/steps.ts";
import { brief, line } from "../text/shown.ts";
import { bytes, clock, duration, fullTime, number } from "../words/figures.ts";
import { Facts, Record } from "./record.tsx";

interface RunProps {
  readonly run: StoredRun;
  readonly maxDiffLines: number;
}

export function Run({ run, maxDiffLines }: RunProps): ReactNode {
  const { task, turns, items, log, attempts } = run;
  const lanes = lanesOf({ items, turns, log, now: run.at, askedAt: undefined });
  const changes = changesOf(run, maxDiffLines);
  return (
    <Still value={true}>
      <div className="still">
        <Head run={run} />
        <main>
          <div className="story">
            {lanes === undefined ? null : <Cloth lanes={lanes} />}
            <section className="steps" id="steps" aria-labelledby="steps-name">
              <h2 id="steps-name" className="part">
                Steps
              </h2>
              <LeftOut run={run} />
              <Steps rows={rowsOf({ items, turns, log, attempts })} hashes={hashesOf(run)} />
            </section>
            <section className="changes" id="changes" aria-labelledby="changes-name">
              <h2 id="changes-name" className="part">
                Changes
              </h2>
              {changes === undefined ? (
                <p className="empty">Nothing was changed.</p>
              ) : (
                <Files shown={changes} comments={[]} />
              )}
            </section>
          </div>
          <div className="proof" id="proof">
            {task === undefined ? (
              <Facts run={run} />
            ) : (
              <Contract task={task} items={items} turns={turns} record={<Record run={run} />} />
            )}
          </div>
        </main>
      </div>
    </Still>
  );
}

function Head({ run }: { run: StoredRun }): ReactNode {
  const { task, thread, at, version } = run;
  const name = line(task?.spec.name ?? thread?.name ?? thread?.title ?? "A thread");
  const words = task === undefined ? undefined : wordsOf(task);
  return (
    <header className="still-top">
      <div className="row">
        <h1>{name}</h1>
        {task?.spec.labels.map((label) => (
          <span className="tag" key={label}>
            {line(label)}
          </span>
        ))}
        <span className="grow" />
        <Themes />
      </div>
      {task === undefined || words === undefined ? (
        <p className="state">{brief(thread?.preview ?? "", 300)}</p>
      ) : (
        <p className="state">
          <span className={`word ${TONE_CLASS[words.tone]}`}>
            <Icon name={words.glyph} />
            {words.word.charAt(0).toUpperCase()}
            {words.word.slice(1)}
          </span>
          <span>{line(standingOf(task, fullTime))}</span>
        </p>
      )}
      <p className="meta">
        As it was stored on <time dateTime={new Date(at).toISOString()}>{fullTime(at)}</time>, written by Heddle{" "}
        {version}. Times are of the zone it was written in. Nothing in this file runs, and it loads nothing.
      </p>
      <nav aria-label="Parts of the run">
        <a href="#proof">{task === undefined ? "Facts" : "Contract"}</a>
        <a href="#steps">Steps</a>
        <a href="#changes">Changes</a>
        <a href="#record">Record</a>
      </nav>
    </header>
  );
}

/** Without a script a choice is one of the style sheet. */
function Themes(): ReactNode {
  return (
    <fieldset className="seg sm themes">
      <legend className="vh">Theme</legend>
      {["system", "dark", "light"].map((theme) => (
        <label key={theme}>
          <input type="radio" name="theme" id={`theme-${theme}`} className="vh" defaultChecked={theme === "system"} />
          <span>{theme}</span>
        </label>
      ))}
    </fieldset>
  );
}

function LeftOut({ run: { leftOut, task, thread } }: Pick<RunProps, "run">): ReactNode {
  const { steps, turns, entries, bytes: count } = leftOut;
  const parts = [
    ...(steps === 0 ? [] : [`${number(steps)} earlier steps`]),
    ...(turns === 0 ? [] : [`${number(turns)} earlier turns`]),
    ...(entries === 0 ? [] : [`${number(entries)} earlier entries of the task`]),
    ...(count === 0 ? [] : [`${bytes(count)} of outputs and messages, each marked where it is cut`]),
  ];
  if (parts.length === 0) return null;
  return (
    <p className="cutmark">
      Left out of this file: {parts.join("; ")}. All of it:{" "}
      <code>heddle threads show {thread?.id ?? task?.id} --json</code>
    </p>
  );
}

function hashesOf({ items, log }: StoredRun): ReadonlyMap<string, string> {
  const ofItems = items.flatMap(({ item, hash }) => (hash === undefined ? [] : [[item.id, hash] as const]));
  return new Map([...ofItems, ...log.map(({ id, hash }) => [id, hash] as const)]);
}

interface StepsProps {
  readonly rows: readonly Row[];
  readonly hashes: ReadonlyMap<string, string>;
}

/** Under the turn they belong to; what came before the first turn stands first. */
function Steps({ rows, hashes }: StepsProps): ReactNode {
  if (rows.length === 0) return <p className="empty">No step was taken.</p>;
  const starts = rows.flatMap((row, index) => (row.kind === "turn" ? [index] : []));
  const before = rows.slice(0, starts[0] ?? rows.length);
  return (
    <div className="tl">
      {before.length === 0 ? null : <List rows={before} hashes={hashes} />}
      {starts.map((start, index) => {
        const row = rows[start];
        if (row?.kind !== "turn") return null;
        return (
          <details key={row.key} open>
            <TurnLine row={row} isFolded={false} onFold={() => undefined} />
            <details className="prompt">
              <summary>What it was asked</summary>
              <RowDetail row={row} />
            </details>
            <List rows={rows.slice(start + 1, starts[index + 1] ?? rows.length)} hashes={hashes} />
          </details>
        );
      })}
    </div>
  );
}

function List({ rows, hashes }: StepsProps): ReactNode {
  return (
    <ol>
      {rows.map((row) => {
        if (row.kind === "turn") return null;
        const line = <StepRow row={row} isSelected={false} onSelect={() => undefined} taskId={undefined} />;
        return (
          <li key={row.key}>
            {row.kind === "stall" ? (
              line
            ) : (
              <details>
                {line}
                <Whole row={row} hash={hashes.get(row.key)} />
              </details>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function Whole({ row, hash }: { row: Exclude<Row, { kind: "turn" }>; hash: string | undefined }): ReactNode {
  const sum = hash === undefined ? null : <code className="wrap">sha256 {hash}</code>;
  if (row.kind !== "item")
    return (
      <div className="whole-step">
        <RowDetail row={row} />
        <p className="meta">{sum}</p>
      </div>
    );
  const { item, startedAt, completedAt, seq } = row.entry;
  return (
    <div className="whole-step step-detail">
      <Detail item={item} isRunning={completedAt === undefined} Markdown={Markdown} />
      <p className="meta">
        began {clock(startedAt, "ms")}
        {completedAt === undefined
          ? ", had not ended when this file was written"
          : `, took ${duration(completedAt - startedAt)}`}{" "}
        · event {seq} of its thread {sum}
      </p>
    </div>
  );
}

/** Files in their order, as long as lines are left; the rest is named with what it would take. */
function changesOf({ changes }: StoredRun, maxLines: number): Shown | undefined {
  if (changes === undefined) return undefined;
  const shown = changes.of === "recorded" ? ofThread(changes) : ofTask(changes);
  let left = maxLines;
  const files = shown.files.map((file) => {
    if (file.diff === undefined) return file;
    const lines = file.diff.split("\n");
    const kept = lines.slice(0, left);
    left -= kept.length;
    const rest = lines.slice(kept.length).join("\n");
    const truncatedBytes = (file.truncatedBytes ?? 0) + new TextEncoder().encode(rest).length;
    return { ...file, diff: kept.join("\n"), truncatedBytes };
  });
  return { ...shown, files };
}
