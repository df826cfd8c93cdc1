/** What verification said, level by level, when, and up to which event. What was not examined is not green. */
import type { VerdictAnswer } from "@heddle/protocol/http";
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Icon, Kbd, TONE_CLASS } from "../../parts/base.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { useKeys } from "../../parts/keys.ts";
import { line } from "../../text/shown.ts";
import { number, when } from "../../words/figures.ts";
import { verdictWords } from "../../words/verdicts.ts";

export function Verdict(): ReactNode {
  const { server, state } = useFacts();
  const act = useAct();
  const [asked, setAsked] = useState(0);
  const last = useResource(`verdict:all:${asked}`, (signal) => api().evidence.lastVerdict({}, { signal }));
  const verify = async (): Promise<void> => {
    await api().evidence.verify({});
    setAsked(asked + 1);
  };
  const isViewer = server.data?.principal.role === "viewer";
  useKeys(isViewer ? {} : { V: () => act.run("Verify all", verify) });
  const verdict = last.data?.verdict ?? undefined;
  const newest = Math.max(last.data?.position ?? 0, state.data?.position ?? 0);
  return (
    <>
      <header className="top">
        <h1>Evidence</h1>
        <span className="grow" />
        <span className="fg2 t12 wide">heddle verify says the same, offline</span>
        <CopyButton text="heddle verify" label="Command" />
        {isViewer ? null : (
          <ActButton act={act} name="Verify all" className="btn pri" call={verify}>
            Verify all <Kbd>V</Kbd>
          </ActButton>
        )}
      </header>
      <Refusal act={act} />
      <Found verdict={verdict} newest={newest} />
    </>
  );
}

function Found({ verdict, newest }: { verdict: VerdictAnswer | undefined; newest: number }): ReactNode {
  const now = useNow();
  const words = verdictWords(verdict?.result);
  if (verdict === undefined)
    return (
      <div className="vf">
        <p className="big">
          <Icon name="off" tone="fg2" />
          Nothing was examined
        </p>
        <p className="fg2 t12">
          The record was not verified by this server since it started. It may be whole; nobody has looked.
        </p>
      </div>
    );
  const newer = newest - verdict.upTo;
  return (
    <div className={verdict.result === "tampered" ? "vf tampered" : "vf"}>
      <div>
        <p className="big">
          <Icon name={words.glyph} tone={TONE_CLASS[words.tone]} />
          {verdict.result === "clean" ? "The record is what was written" : `The record: ${words.word}`}
        </p>
        <p className="fg1 t12">
          {verdict.report === undefined
            ? ""
            : `${number(verdict.report.events)} events in ${number(verdict.report.streams)} streams, ${number(verdict.report.checkpoints)} signed checkpoints, `}
          checked {when(verdict.at, now.at)}. {verdict.reason === undefined ? "" : `${line(verdict.reason)} `}
          {newer > 0 ? <span className="say">{number(newer)} events are newer and not checked yet.</span> : null}
        </p>
        {verdict.findings.slice(0, 20).map(({ code, weight, message, stream, version }, index) => (
          <p key={index} className={weight === "warning" ? "meta" : "violation"}>
            {line(message)} <code>{line(code)}</code>
            {stream === undefined ? "" : ` in ${line(stream)}${version === undefined ? "" : `, event ${version}`}`}
          </p>
        ))}
      </div>
      <ul className="lv">
        {verdict.levels.map(({ level, name, examined, what }) => (
          <li key={level}>
            <Icon
              name={examined === 0 ? "off" : "check"}
              tone={examined === 0 ? "fg2" : verdict.result === "clean" ? "ok" : "fg1"}
            />
            <b>{line(name)}</b>
            <span>{examined === 0 ? "nothing examined" : line(what)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
