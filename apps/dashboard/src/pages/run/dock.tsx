/** Open questions of a run: they stay in sight until they are answered. */
import type { Approval } from "@heddle/protocol/http";
import { useRef, useState, type ReactNode } from "react";
import { answers, useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { useStore } from "../../live/store.ts";
import { Refusal, useAct } from "../../parts/act.tsx";
import { Answers } from "../../parts/answer.tsx";
import { Age, Icon } from "../../parts/base.tsx";
import { Exact } from "../../parts/exact.tsx";
import { answeredText, questionSentence, questionWords } from "../../words/questions.ts";

export function Dock({ approvals }: { approvals: readonly Approval[] }): ReactNode {
  const [first, ...more] = approvals;
  const last = useLast(approvals);
  if (first === undefined) return last === undefined ? null : <Answered question={last} />;
  return (
    <div className="dock" role="group" aria-label="A question of the agent">
      <p className="vh" role="alert">
        {questionSentence(first.question)}
      </p>
      <Question key={first.id} approval={first} />
      {more.length === 0 ? null : <p className="meta">and {more.length} more after this one</p>}
    </div>
  );
}

/** The question that stood here until a moment ago. */
function useLast([first]: readonly Approval[]): Approval | undefined {
  const now = useNow();
  const last = useRef<{ approval: Approval; at: number }>(undefined);
  if (first !== undefined) last.current = { approval: first, at: now.at };
  const kept = last.current;
  return kept === undefined || now.at - kept.at > KEPT_MS ? undefined : kept.approval;
}
const KEPT_MS = 10_000;

function Answered({ question }: { question: Approval }): ReactNode {
  const { server } = useFacts();
  const given = useStore(answers).get(question.id);
  if (given === undefined) return null;
  return (
    <p className="dock meta" role="status">
      {questionSentence(question.question)} {answeredText(question.question.kind, given, server.data?.principal.name)}
    </p>
  );
}

function Question({ approval }: { approval: Approval }): ReactNode {
  const act = useAct();
  const { server } = useFacts();
  const words = questionWords(approval.question);
  const [isSeen, setSeen] = useState(words.exact.length === 0);
  const mayAllow = approval.mayAnswer.includes("accept");
  const role = server.data?.principal.role;
  return (
    <>
      <p className="row">
        <Icon name="ask" tone="you" />
        <b className="grow">
          {words.before}
          {words.strong}
          {words.after}
        </b>
        <span className="fg2 t12">
          {words.isBeyond && role !== "owner" ? "only an owner may say yes · " : ""}
          asked <Age at={approval.askedAt} suffix=" ago" />
        </span>
      </p>
      {words.exact.length === 0 ? null : <Exact lines={words.exact} onSeen={() => setSeen(true)} />}
      {words.reason === undefined ? null : <p className="fg1">“{words.reason}”</p>}
      <p className="meta">
        {words.where === undefined ? null : (
          <>
            in <code>{words.where}</code> ·{" "}
          </>
        )}
        {words.scope}
      </p>
      <div className="dock-acts">
        {role === "viewer" ? (
          <p className="meta">A viewer cannot answer.</p>
        ) : (
          <Answers approval={approval} act={act} isSelected isSeen={isSeen} mayAllow={mayAllow} />
        )}
      </div>
      <Refusal act={act} />
    </>
  );
}
