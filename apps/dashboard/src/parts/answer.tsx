/** What can be answered to a question: yes once, yes for the thread, no with words, or what it asks for. */
import type { AnswerInput, Approval, ApprovalQuestion } from "@heddle/protocol/http";
import { useRef, useState, type ReactNode } from "react";
import { api } from "../live/session.ts";
import { line } from "../text/shown.ts";
import { questionWords } from "../words/questions.ts";
import { ActButton, useSettled, type Act } from "./act.tsx";
import { Kbd } from "./base.tsx";
import { useKeys } from "./keys.ts";
import { FormOf } from "./schema-form.tsx";

export function answer(approval: Approval, given: AnswerInput): Promise<unknown> {
  return api().answerApproval(approval.threadId, approval.id, given);
}

interface AnswersProps {
  readonly approval: Approval;
  readonly act: Act;
  /** It is the one that keys answer, and has the one primary button. */
  readonly isSelected: boolean;
  /** Where it stands, in a list. */
  readonly place?: string;
  readonly isSeen: boolean;
  /** Only an owner lets an agent beyond its sandbox. */
  readonly mayAllow: boolean;
  /** The menu of the row holds the rest. */
  readonly isBrief?: boolean;
}

export function Answers(props: AnswersProps): ReactNode {
  const { question } = props.approval;
  if (question.kind === "userInput") return <Choices {...props} question={question} />;
  if (question.kind === "elicitation") return <Content {...props} question={question} />;
  if (question.kind === "permissions" && props.mayAllow) return <Rights {...props} question={question} />;
  return <Allow {...props} />;
}

interface AllowProps extends AnswersProps {
  /** Of what was asked for: only this. */
  readonly granted?: AnswerInput["granted"];
  readonly isNothing?: boolean;
}

function Allow(props: AllowProps): ReactNode {
  const { approval, act, isSelected, place = "", isSeen, mayAllow, isBrief, granted, isNothing } = props;
  const [isDenying, setDenying] = useState(false);
  const wasDenying = useRef(false);
  wasDenying.current ||= isDenying;
  const isSettled = useSettled(`${approval.id} ${place}`);
  const { isBeyond } = questionWords(approval.question);
  const [isAsked, setAsked] = useState(false);
  const isOff = !isSettled || !isSeen || !mayAllow || isNothing === true;
  const part = granted === undefined ? {} : { granted };
  const once = (): Promise<unknown> => answer(approval, { decision: "accept", ...part });
  const forThread = (): Promise<unknown> => {
    if (isBeyond && !isAsked) {
      setAsked(true);
      return Promise.resolve();
    }
    return answer(approval, { decision: "acceptForThread", ...part });
  };
  // Keys do what the buttons do, and no more than these would.
  useKeys({
    ...(isSelected && !isOff && !isDenying
      ? {
          a: () => act.run("Allow once", once),
          A: () => act.run("Allow for this thread", forThread),
        }
      : {}),
    ...(isSelected && isSettled && !isDenying ? { d: () => setDenying(true) } : {}),
  });
  if (isDenying) return <Deny approval={approval} act={act} onBack={() => setDenying(false)} />;
  return (
    <div className="acts">
      {mayAllow ? null : <p className="meta">Only an owner may allow this.</p>}
      {!mayAllow ? null : (
        <ActButton act={act} name="Allow once" className={isSelected ? "btn pri" : "btn"} isOff={isOff} call={once}>
          Allow once {isSelected ? <Kbd>A</Kbd> : null}
        </ActButton>
      )}
      {!mayAllow || (isBrief === true && !isAsked) ? null : (
        <ActButton act={act} name="Allow for this thread" isOff={isOff} call={forThread}>
          {isAsked ? "Beyond the sandbox, every time: allow?" : "Allow for this thread"}{" "}
          {isSelected ? <Kbd>⇧A</Kbd> : null}
        </ActButton>
      )}
      <button
        type="button"
        className="btn"
        // Whoever goes back from the words stands here again.
        autoFocus={wasDenying.current}
        onClick={() => setDenying(true)}
        disabled={act.sending !== undefined}
      >
        {isBrief === true ? "Deny…" : "Deny, and say why…"} {isSelected ? <Kbd>D</Kbd> : null}
      </button>
    </div>
  );
}

type Wanted = Extract<ApprovalQuestion, { kind: "permissions" }>;

/** Each right by itself: what is not ticked is not granted. */
function Rights({ question, ...props }: AnswersProps & { question: Wanted }): ReactNode {
  const { read, write, network } = question.permissions;
  const all = [
    ...(network ? [{ key: "network", text: "the network" }] : []),
    ...write.map((path) => ({ key: `write:${path}`, text: `write ${line(path)}` })),
    ...read.map((path) => ({ key: `read:${path}`, text: `read ${line(path)}` })),
  ];
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const has = (key: string): boolean => !left.has(key);
  const toggle = (key: string): void => {
    const next = new Set(left);
    if (!next.delete(key)) next.add(key);
    setLeft(next);
  };
  const granted = {
    network: network && has("network"),
    write: write.filter((path) => has(`write:${path}`)),
    read: read.filter((path) => has(`read:${path}`)),
  };
  return (
    <fieldset className="rights">
      <legend className="meta">What it may have of it</legend>
      {all.map(({ key, text }) => (
        <label key={key} className="row">
          <input type="checkbox" checked={has(key)} onChange={() => toggle(key)} />
          <code className="wrap">{text}</code>
        </label>
      ))}
      <Allow {...props} {...(left.size === 0 ? {} : { granted })} isNothing={left.size === all.length} />
    </fieldset>
  );
}

function Deny({ approval, act, onBack }: { approval: Approval; act: Act; onBack: () => void }): ReactNode {
  const [why, setWhy] = useState("");
  const deny = (): Promise<unknown> =>
    answer(approval, { decision: "decline", ...(why.trim() === "" ? {} : { reason: why.trim() }) });
  return (
    <form
      className="deny"
      onSubmit={(event) => {
        event.preventDefault();
        act.run("Deny", deny);
      }}
    >
      <input
        className="in"
        autoFocus
        aria-label="Why; the agent is told"
        placeholder="Why? The agent is told."
        value={why}
        onChange={(event) => setWhy(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onBack();
        }}
      />
      <button type="submit" className="btn bad" disabled={act.sending !== undefined}>
        {act.sending === "Deny" ? "sending…" : "Deny"}
      </button>
      <button type="button" className="btn quiet" onClick={onBack}>
        Back
      </button>
    </form>
  );
}

type Asked = Extract<ApprovalQuestion, { kind: "userInput" }>;

function Choices({ approval, act, isSelected, isBrief, question }: AnswersProps & { question: Asked }): ReactNode {
  const [chosen, setChosen] = useState<Readonly<Record<string, string>>>({});
  const isWhole = question.questions.every(({ id }) => (chosen[id] ?? "").trim() !== "");
  const send = (): Promise<unknown> =>
    answer(approval, {
      decision: "accept",
      answers: Object.fromEntries(question.questions.map(({ id }) => [id, [chosen[id] ?? ""]])),
    });
  return (
    <form
      className="choices"
      onSubmit={(event) => {
        event.preventDefault();
        if (isWhole) act.run("Answer", send);
      }}
    >
      {question.questions.map(({ id, question: text, options }) => (
        <fieldset key={id}>
          <legend className={isBrief === true && question.questions.length === 1 ? "vh" : ""}>{line(text)}</legend>
          {options.map(({ label, description }) => (
            <button
              key={label}
              type="button"
              className="btn"
              aria-pressed={chosen[id] === label}
              title={line(description)}
              onClick={() => setChosen({ ...chosen, [id]: label })}
            >
              {line(label)}
            </button>
          ))}
          <input
            className="in"
            aria-label={`Answer: ${line(text)}`}
            placeholder="Your own answer"
            value={options.some(({ label }) => label === chosen[id]) ? "" : (chosen[id] ?? "")}
            onChange={(event) => setChosen({ ...chosen, [id]: event.target.value })}
          />
        </fieldset>
      ))}
      <div className="acts">
        <button
          type="submit"
          className={isSelected ? "btn pri" : "btn"}
          disabled={!isWhole || act.sending !== undefined}
        >
          {act.sending === "Answer" ? "sending…" : "Answer"}
        </button>
        <ActButton act={act} name="Give no answer" call={() => answer(approval, { decision: "decline" })} />
      </div>
    </form>
  );
}

type Elicited = Extract<ApprovalQuestion, { kind: "elicitation" }>;

function Content({ approval, act, isSelected, question }: AnswersProps & { question: Elicited }): ReactNode {
  const [content, setContent] = useState<Readonly<Record<string, unknown>>>({});
  return (
    <form
      className="choices"
      onSubmit={(event) => {
        event.preventDefault();
        act.run("Send", () => answer(approval, { decision: "accept", content }));
      }}
    >
      <FormOf schema={question.schema} value={content} onChange={setContent} />
      <div className="acts">
        <button type="submit" className={isSelected ? "btn pri" : "btn"} disabled={act.sending !== undefined}>
          {act.sending === "Send" ? "sending…" : "Send"}
        </button>
        <ActButton act={act} name="Decline" call={() => answer(approval, { decision: "decline" })} />
      </div>
    </form>
  );
}
