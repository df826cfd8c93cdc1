/** One check: how it ended, in words, how long it took, and what it printed behind a click. Vacuous and error are words. */
import type { Task } from "@heddle/protocol/http";
import { useContext, useState, type ReactNode } from "react";
import { Icon } from "../../parts/base.tsx";
import { Still } from "../../parts/still.ts";
import { Printed } from "../../parts/printed.tsx";
import { line } from "../../text/shown.ts";
import { duration } from "../../words/figures.ts";

export type Result = NonNullable<Task["lastCheck"]>["results"][number];

interface CheckLineProps {
  readonly result: Result;
  /** Of a task that is verified: the only place where a check is green. */
  readonly isProven: boolean;
}

export function CheckLine({ result, isProven }: CheckLineProps): ReactNode {
  const { name, outcome, message, output, sha256, durationMs, parts, tests } = result;
  const isGood = outcome === "passed";
  return (
    <li>
      <Icon name={isGood ? "check" : "x"} tone={isGood ? (isProven ? "ok" : "fg1") : "no"} />
      <div className="grow">
        <p>
          <span className="vh">{outcome}: </span>
          {line(name)} <Flags result={result} />
        </p>
        <p className="meta">
          {outcome === "error" ? <span className="no">could not run: </span> : null}
          <span className={isGood ? "" : "no"}>{line(message)}</span>
          {tests === undefined || message.includes("passed")
            ? null
            : ` ${tests.passed} passed, ${tests.failed} failed, ${tests.skipped} skipped`}
        </p>
        {parts === undefined ? null : (
          <ul className="checks parts">
            {parts.map((part) => (
              <CheckLine key={part.name} result={part} isProven={isProven} />
            ))}
          </ul>
        )}
        <Proof output={output} sha256={sha256} />
      </div>
      <span className="du">{duration(durationMs)}</span>
    </li>
  );
}

function Proof({ output, sha256 }: Pick<Result, "output" | "sha256">): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const isStill = useContext(Still);
  if (output === undefined && sha256 === undefined) return null;
  const whole = (
    <>
      {output === undefined ? null : <Printed text={output} isRunning={false} />}
      {sha256 === undefined ? null : (
        <p className="meta">
          sha256 <code>{sha256}</code>
        </p>
      )}
    </>
  );
  if (isStill)
    return (
      <details>
        <summary className="more-btn">Output</summary>
        {whole}
      </details>
    );
  return (
    <>
      <button type="button" className="more-btn" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Less" : "Output"}
      </button>
      {isOpen ? whole : null}
    </>
  );
}

function Flags({ result }: { result: Result }): ReactNode {
  return (
    <>
      {result.isVacuous === true ? (
        <span className="tag say" title="It passed before any work was done, so it proves nothing by itself">
          vacuous
        </span>
      ) : null}
      {result.isGuard === true ? (
        <span className="tag" title="It demands that something stays unchanged">
          guard
        </span>
      ) : null}
      {result.isFlaky === true ? <span className="tag say">flaky</span> : null}
    </>
  );
}
