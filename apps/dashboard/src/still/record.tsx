/** The record behind a file: which streams it was read from, the hash that stands for each, and what a verification said. */
import type { StoredRun } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { Icon, TONE_CLASS } from "../parts/base.tsx";
import { line } from "../text/shown.ts";
import { cost, fullTime, number, tokens } from "../words/figures.ts";
import { verdictWords } from "../words/verdicts.ts";

export function Record({ run: { streams, verdict, task, thread } }: { run: StoredRun }): ReactNode {
  const words = verdictWords(verdict?.result);
  return (
    <section className="c-chain" id="record">
      <h2 className="ch">Record</h2>
      {streams.map(({ stream, events, head }) => (
        <div key={stream} className="stream">
          <p className="row t12">
            <Icon name="chain" tone="fg2" />
            <span className="grow">
              <code>{stream}</code>, {number(events)} events
            </span>
          </p>
          {head === undefined ? null : (
            <p className="meta wrap">
              the last has sha256 <code>{head}</code>
            </p>
          )}
        </div>
      ))}
      <p className="t12 fg1">
        {verdict === undefined ? (
          "It was not verified when this file was written."
        ) : (
          <>
            <b className={TONE_CLASS[words.tone]}>{words.word}</b> up to event {number(verdict.upTo)} of the record,
            verified on {fullTime(verdict.at)}
            {verdict.reason === undefined ? "" : `: ${line(verdict.reason)}`}
          </>
        )}
      </p>
      <p className="meta">
        This file is a copy for reading and proves nothing by itself. In the home of the run:{" "}
        <code>heddle verify {task?.id ?? thread?.id}</code>. Elsewhere:{" "}
        <code>heddle threads export {thread?.id ?? "ID"} -o thread.jsonl</code>, then{" "}
        <code>heddle verify thread.jsonl</code>.
      </p>
    </section>
  );
}

/** In place of a contract, where a thread works for no task. */
export function Facts({ run }: { run: StoredRun }): ReactNode {
  const { thread, turns } = run;
  const [last] = turns;
  if (thread === undefined) return null;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["thread", thread.id],
    ["folder", line(thread.workspace)],
    ["model", last?.settings.model === undefined ? undefined : line(last.settings.model)],
    ["sandbox", last?.sandboxLevel],
    ["tokens", tokens(thread.usage.inputTokens + thread.usage.outputTokens)],
    ["cost", cost({ known: thread.costUsd, isPartial: thread.unpriced > 0, unpriced: thread.unpriced })],
  ];
  return (
    <aside className="contract" aria-label="Facts">
      <section>
        <h2 className="ch">Facts</h2>
        <dl className="facts">
          {facts.map(([name, value]) =>
            value === undefined ? null : (
              <div key={name}>
                <dt>{name}</dt>
                <dd className="wrap">{value}</dd>
              </div>
            ),
          )}
        </dl>
        <p className="meta pt">It works for no task, so nothing of it was checked.</p>
      </section>
      <Record run={run} />
    </aside>
  );
}
