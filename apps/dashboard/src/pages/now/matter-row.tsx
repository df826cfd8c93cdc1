/** One matter: its sentence, the exact thing, the agent's reason, and what can be done about it here. */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { api } from "../../live/session.ts";
import { answers, useFacts } from "../../live/facts.tsx";
import { useStore } from "../../live/store.ts";
import { ActButton, Refusal, useAct, type Act } from "../../parts/act.tsx";
import { answer, Answers } from "../../parts/answer.tsx";
import { Age, Icon, Link, TONE_CLASS } from "../../parts/base.tsx";
import { Exact } from "../../parts/exact.tsx";
import { Menu, type MenuEntry } from "../../parts/menu.tsx";
import { Reply } from "../../parts/reply.tsx";
import { go, look } from "../../router.ts";
import { answeredText } from "../../words/questions.ts";
import type { Matter } from "./matters.ts";

interface RowProps {
  readonly matter: Matter;
  readonly isSelected: boolean;
  /** Where it stands, and whether it is selected only because another one has gone. */
  readonly place: string;
  /** It was answered, and goes in a moment. */
  readonly isGone: boolean;
  readonly onPutOff: () => void;
}

export function MatterRow({ matter, isSelected, place, isGone, onPutOff }: RowProps): ReactNode {
  const act = useAct();
  const row = useRef<HTMLLIElement>(null);
  const [isSeen, setSeen] = useState((matter.exact ?? []).length === 0);
  useEffect(() => {
    if (isSelected) row.current?.scrollIntoView({ block: "nearest" });
  }, [isSelected]);
  return (
    <li
      className={`ask${isSelected ? " sel" : ""}`}
      data-id={matter.id}
      aria-current={isSelected ? "true" : undefined}
      tabIndex={-1}
      ref={row}
      onFocus={() => {
        if (!isSelected) look({ sel: matter.id });
      }}
    >
      <Icon name={matter.glyph} tone={TONE_CLASS[matter.tone]} />
      <div className="grow">
        <p className="what">
          {matter.before}
          <b className={matter.tone === "said" && matter.of.kind === "task" ? "say" : ""}>{matter.strong}</b>
          {matter.after}
        </p>
        {matter.exact === undefined || matter.exact.length === 0 ? null : (
          <Exact lines={matter.exact} onSeen={() => setSeen(true)} />
        )}
        {matter.quote === undefined ? null : <p className="why">“{matter.quote}”</p>}
        <p className="meta">
          {matter.to === undefined ? (
            <b>{matter.name}</b>
          ) : (
            <Link to={matter.to} className="lk">
              {matter.name}
            </Link>
          )}
          {matter.facts.map((fact) => ` · ${fact}`)}
          {matter.band === "heddle" ? null : (
            <>
              {" · "}
              {matter.of.kind === "approval" ? "asked " : ""}
              <Age at={matter.at} suffix=" ago" />
            </>
          )}
        </p>
        <Refusal act={act} />
      </div>
      {isGone ? (
        <Answered matter={matter} />
      ) : (
        <Acts {...{ matter, act, isSelected, place, isGone, isSeen, onPutOff }} />
      )}
    </li>
  );
}

function Answered({ matter: { of } }: { matter: Matter }): ReactNode {
  const { server } = useFacts();
  const given = useStore(answers).get(of.kind === "approval" ? of.approval.id : "");
  if (of.kind !== "approval" || given === undefined) return <p className="meta">answered</p>;
  return <p className="meta">{answeredText(of.approval.question.kind, given, server.data?.principal.name)}</p>;
}

function Acts(props: RowProps & { act: Act; isSeen: boolean }): ReactNode {
  const { matter, act, isSelected, place, isSeen, onPutOff } = props;
  const { server } = useFacts();
  const role = server.data?.principal.role ?? "viewer";
  const open: MenuEntry = {
    name: "Open",
    run: () => {
      if (matter.to !== undefined) go(matter.to);
    },
  };
  const off: MenuEntry = { name: "Put off for an hour, in this browser", run: onPutOff };
  if (role === "viewer") return <Menu label={`More for ${matter.name}`} entries={[open, off]} />;
  const { of } = matter;
  switch (of.kind) {
    case "approval":
      return <ApprovalActs {...{ act, isSelected, place, isSeen, of }} more={[open, off]} name={matter.name} />;
    case "stall":
      return <StallActs act={act} taskId={of.task.id} more={[open, off]} name={matter.name} />;
    case "task":
      return <TaskActs act={act} of={of} more={[open, off]} name={matter.name} />;
    case "sink":
      return (
        <div className="acts">
          <ActButton act={act} name="Send a test" call={() => tested(of.sink)} />
          <Menu label={`More for ${matter.name}`} entries={[open, off]} />
        </div>
      );
    case "worker":
      return <Menu label="More" entries={[off]} />;
  }
}

/** A test that does not arrive is no success. */
async function tested(sink: string): Promise<void> {
  const { outcome, message } = await api().notifications.test(sink);
  if (outcome !== "delivered") throw new Error(`The test did not arrive: ${message}`);
}

interface MoreProps {
  readonly act: Act;
  readonly more: readonly MenuEntry[];
  readonly name: string;
}

function ApprovalActs({
  act,
  of,
  isSelected,
  place,
  isSeen,
  more,
  name,
}: MoreProps & {
  of: Extract<Matter["of"], { kind: "approval" }>;
  isSelected: boolean;
  place: string;
  isSeen: boolean;
}): ReactNode {
  const { approval } = of;
  const isBeyond = "wish" in approval.question && approval.question.wish !== undefined;
  const mayAllow = approval.mayAnswer.includes("accept");
  return (
    <>
      <Answers {...{ approval, act, isSelected, place, isSeen, mayAllow }} isBrief />
      <Menu
        label={`More for ${name}`}
        entries={[
          ...(mayAllow && isSeen && approval.mayAnswer.includes("acceptForThread")
            ? [
                {
                  name: "Allow for this thread",
                  ...(isBeyond ? { asks: "Beyond the sandbox, every time: allow?" } : {}),
                  run: () => act.run("Allow for this thread", () => answer(approval, { decision: "acceptForThread" })),
                },
              ]
            : []),
          {
            name: "Deny, and stop the turn",
            asks: "Stop the turn?",
            isBad: true,
            run: () => act.run("Stop the turn", () => answer(approval, { decision: "cancel" })),
          },
          ...more,
        ]}
      />
    </>
  );
}

function StallActs({ act, taskId, more, name }: MoreProps & { taskId: string }): ReactNode {
  const relieve = (action: "kill-child" | "eof" | "interrupt" | "retry") => () =>
    api().tasks.relieve(taskId, { action });
  return (
    <div className="acts">
      <ActButton act={act} name="Kill the child" call={relieve("kill-child")} />
      <ActButton act={act} name="End its input" call={relieve("eof")} />
      <Menu
        label={`More for ${name}`}
        entries={[
          { name: "Interrupt the turn", run: () => act.run("Interrupt", relieve("interrupt")) },
          { name: "Try again from the beginning", run: () => act.run("Try again", relieve("retry")) },
          ...more,
        ]}
      />
    </div>
  );
}

function TaskActs({ act, of, more, name }: MoreProps & { of: Extract<Matter["of"], { kind: "task" }> }): ReactNode {
  const { task } = of;
  const cancel: MenuEntry = {
    name: "Cancel the task",
    asks: "Cancel it?",
    isBad: true,
    run: () => act.run("Cancel", () => api().tasks.cancel(task.id)),
  };
  const isSpent = task.pause?.cause === "budget" || task.pause?.cause === "nudges";
  const isOutOfTurns = isSpent && task.spent.turns >= task.budget.turns;
  if (task.pause?.cause === "question")
    return (
      <>
        <Reply act={act} taskId={task.id} />
        <Menu label={`More for ${name}`} entries={[cancel, ...more]} />
      </>
    );
  const first =
    task.state === "failed" ? (
      <ActButton act={act} name="Try again" call={() => api().tasks.retry(task.id)} />
    ) : task.state === "paused" && isOutOfTurns ? (
      <ActButton
        act={act}
        name="Give 2 turns more"
        call={() => api().tasks.resume(task.id, { budget: { turns: 2 } })}
      />
    ) : (
      <button type="button" className="btn" onClick={() => go(`/tasks/${task.id}`)}>
        Look
      </button>
    );
  const resume: readonly MenuEntry[] =
    task.state === "paused"
      ? [{ name: "Resume", run: () => act.run("Resume", () => api().tasks.resume(task.id)) }, cancel]
      : [];
  return (
    <div className="acts">
      {first}
      <Menu label={`More for ${name}`} entries={[...resume, ...more]} />
    </div>
  );
}
