/** The record of a run: how many events, and up to where it was verified. Nothing examined is not green. */
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Icon, Kbd, TONE_CLASS } from "../../parts/base.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { useKeys } from "../../parts/keys.ts";
import type { ChainFound, checkChain } from "./chain.ts";
import { verdictWords } from "../../words/verdicts.ts";
import { number, when } from "../../words/figures.ts";

interface RecordProps {
  readonly threadId: string | undefined;
  readonly seq: number | undefined;
  readonly taskId?: string;
}

export function RecordPart({ threadId, seq, taskId }: RecordProps): ReactNode {
  const subject = taskId ?? threadId;
  const { server } = useFacts();
  const now = useNow();
  const act = useAct();
  const [asked, setAsked] = useState(0);
  const last = useResource(`verdict:${subject}:${asked}`, (signal) =>
    api().evidence.lastVerdict(subject === undefined ? {} : { subject }, { signal }),
  );
  const isViewer = server.data?.principal.role === "viewer";
  const verify = async (): Promise<void> => {
    await api().evidence.verify(subject === undefined ? {} : { subject });
    setAsked(asked + 1);
  };
  useKeys(isViewer || subject === undefined ? {} : { V: () => act.run("Verify now", verify) });
  const verdict = last.data?.verdict ?? undefined;
  const words = verdictWords(verdict?.result);
  return (
    <section className="c-chain">
      <h2 className="ch">Record</h2>
      <p className="row t12">
        <Icon name="chain" tone="fg2" />
        <span className="grow">{seq === undefined ? "no thread yet" : `${number(seq)} events in its thread`}</span>
      </p>
      <p className="t12 fg1">
        {verdict === undefined ? (
          "Not verified by this server since it started."
        ) : (
          <>
            <b className={TONE_CLASS[words.tone]}>{words.word}</b> up to event {number(verdict.upTo)}, checked{" "}
            {when(verdict.at, now.at)}
          </>
        )}
      </p>
      <div className="row gap6">
        {isViewer ? null : (
          <ActButton act={act} name="Verify now" call={verify} isOff={subject === undefined}>
            Verify now <Kbd>V</Kbd>
          </ActButton>
        )}
        <CopyButton text={`heddle verify ${subject ?? ""}`.trim()} label="Command" />
      </div>
      {subject === undefined ? null : <ChainHere of={taskId === undefined ? { threadId: subject } : { taskId }} />}
      <Refusal act={act} />
    </section>
  );
}

/** What this browser finds itself, beside what the server says. It reads, so viewers may too. */
function ChainHere({ of }: { of: Parameters<typeof checkChain>[0] }): ReactNode {
  const act = useAct();
  const [found, setFound] = useState<ChainFound>();
  const check = async (): Promise<void> => {
    const chain = await import("./chain.ts");
    setFound(await chain.checkChain(of));
  };
  return (
    <>
      <ActButton act={act} name="Check the chain here" className="btn quiet" call={check} />
      <p className="t12 fg1" role="status">
        {found === undefined ? null : found.problem === undefined ? (
          <>
            This browser followed the chain through {number(found.events)} events
            {found.isCut ? ", the first of more" : ""}, and {number(found.heads)} signed heads are in it.
          </>
        ) : (
          <b className="no">The chain does not hold: {found.problem}.</b>
        )}
      </p>
      <Refusal act={act} />
    </>
  );
}
