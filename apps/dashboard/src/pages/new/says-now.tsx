/** Beside the draft: what the checks say before any work, what is wrong with it, and the same as a file. */
import type { ReactNode } from "react";
import { Icon } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";
import { duration } from "../../words/figures.ts";
import type { Linted } from "./new-task.tsx";

interface SaysNowProps {
  readonly yaml: string;
  readonly linted: Linted;
  readonly onRun: () => void;
  readonly isEmpty: boolean;
}

export function SaysNow({ yaml, linted, onRun, isEmpty }: SaysNowProps): ReactNode {
  const { answer, problem, isRunning } = linted;
  const problems = answer?.problems ?? [];
  const warnings = answer?.warnings ?? [];
  const atLine = new Map(problems.flatMap((one) => (one.line === undefined ? [] : [[one.line, one.message] as const])));
  return (
    <aside className="nt-side" aria-label="What it comes to">
      <section>
        <h2 className="h row">
          What the checks say now <span className="fg2 grow">before any work, in the sandbox</span>
          <button type="button" className="btn" onClick={onRun} disabled={isEmpty || isRunning}>
            {isRunning ? "running…" : answer?.results === undefined ? "Run them" : "Run again"}
          </button>
        </h2>
        {answer?.results === undefined ? <p className="meta">not run</p> : <Results results={answer.results} />}
        {problem === undefined ? null : <p className="refusal">{line(problem.message)}</p>}
      </section>
      <section>
        <h2 className="h row">
          <span className="grow">heddle-task.yaml</span>
          {answer === undefined ? null : (
            <>
              <span className={problems.length > 0 ? "no" : "fg2"}>
                {problems.length === 1 ? "1 mistake" : `${problems.length} mistakes`}
              </span>
              {warnings.length === 0 ? null : (
                <span className="say">{warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}</span>
              )}
            </>
          )}
        </h2>
        {problems.map(({ message, key, line: at }) => (
          <p className="refusal" key={key + message}>
            {at === undefined ? "" : `line ${at}: `}
            {line(message)} {key === "" ? null : <code>{line(key)}</code>}
          </p>
        ))}
        {warnings.map((warning) => (
          <p className="meta say" key={warning}>
            {line(warning)}
          </p>
        ))}
        {isEmpty ? (
          <p className="meta">nothing written yet</p>
        ) : (
          <ol className="yaml">
            {yaml
              .trimEnd()
              .split("\n")
              .map((text, index) => (
                <li key={index} className={atLine.has(index + 1) ? "hint" : ""}>
                  {line(text)}
                  {atLine.has(index + 1) ? <em>{line(atLine.get(index + 1) ?? "")}</em> : null}
                </li>
              ))}
          </ol>
        )}
      </section>
    </aside>
  );
}

function Results({ results }: { results: NonNullable<NonNullable<Linted["answer"]>["results"]> }): ReactNode {
  return (
    <ul className="checks">
      {results.map(({ name, outcome, message, durationMs }) => (
        <li key={name}>
          <Icon name={outcome === "passed" ? "check" : "x"} tone={outcome === "passed" ? "say" : "fg1"} />
          <div className="grow">
            <p>
              {line(name)} {outcome === "passed" ? <span className="tag say">vacuous</span> : null}
            </p>
            <p className="meta">
              {line(message)}.{" "}
              {outcome === "passed" ? (
                <span className="say">It passes without any work; right for “still passes”, no proof by itself.</span>
              ) : outcome === "failed" ? (
                <b>Good: it can prove something.</b>
              ) : (
                <span className="no">It could not run.</span>
              )}
            </p>
          </div>
          <span className="du">{duration(durationMs)}</span>
        </li>
      ))}
    </ul>
  );
}
