/** A task, written: what is to be done, and what decides that it is. A check that passes before any work is said while it is written. */
import type { LintAnswer } from "@heddle/client";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { api } from "../../live/session.ts";
import { asError } from "../../live/resource.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Kbd, Segments } from "../../parts/base.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { go } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { asYaml, keepDraft, newDraft, readDraft, specOf, type Draft } from "./draft.ts";
import { TaskForm } from "./task-form.tsx";
import { SaysNow } from "./says-now.tsx";

export interface Linted {
  readonly answer: LintAnswer | undefined;
  readonly problem: Error | undefined;
  readonly isRunning: boolean;
}

const LINT_AFTER_MS = 500;

export function NewTask(): ReactNode {
  useTitle("New task");
  const [draft, setDraft] = useState(readDraft);
  const act = useAct();
  const change = (more: Partial<Draft>): void => {
    const next = { ...draft, ...more };
    setDraft(next);
    keepDraft(next);
  };
  const yaml = draft.mode === "form" ? asYaml(specOf(draft)) : draft.text;
  const { server } = useFacts();
  const { linted, run } = useLint(draft);
  const add = async (): Promise<void> => {
    const task = await api().tasks.create({ ...written(draft), clientId: draft.id });
    keepDraft(newDraft());
    go(`/tasks/${task.id}`);
  };
  const isEmpty = draft.mode === "form" ? draft.goal.trim() === "" : draft.text.trim() === "";
  if (server.data?.principal.role === "viewer")
    return (
      <main className="lost" aria-label="New task" id="main">
        <h1>A viewer adds no tasks</h1>
        <p className="fg2">An owner gives another role: heddle token add NAME --role user</p>
      </main>
    );
  return (
    <main
      className="nt"
      aria-label="New task"
      id="main"
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && !isEmpty) act.run("Add", add);
      }}
    >
      <header className="top">
        <h1>New task</h1>
        <Segments
          label="How to write it"
          value={draft.mode}
          onChoose={(mode) => change({ mode, text: mode === "yaml" && draft.mode === "form" ? yaml : draft.text })}
          choices={[
            { value: "form", label: "Form" },
            { value: "yaml", label: "YAML" },
            { value: "markdown", label: "Page" },
          ]}
        />
        <span className="grow" />
        <span className="fg2 t12 wide">kept as a draft in this browser</span>
        <CopyButton text={yaml} label="Copy as file" />
        <ActButton act={act} name="Add" className="btn pri" isOff={isEmpty} call={add}>
          Add to the queue <Kbd>⌘↵</Kbd>
        </ActButton>
      </header>
      <Refusal act={act} />
      <div className="nt-cols">
        {draft.mode === "form" ? (
          <TaskForm draft={draft} onChange={change} linted={linted} />
        ) : (
          <div className="nt-form">
            <label className="fl">
              <span className="h">{draft.mode === "yaml" ? "The task as YAML" : "The task as a page"}</span>
              <textarea
                className="mono tall"
                spellCheck={false}
                value={draft.text}
                onChange={(event) => change({ text: event.target.value })}
              />
            </label>
          </div>
        )}
        <SaysNow yaml={yaml} linted={linted} onRun={run} isEmpty={isEmpty} />
      </div>
    </main>
  );
}

type Written = Parameters<ReturnType<typeof api>["tasks"]["lint"]>[0];

function written(draft: Draft): Written {
  return draft.mode === "form" ? { spec: specOf(draft) } : { spec: draft.text, format: draft.mode };
}

/** Mistakes are said while one writes; checks run only when they are asked to. */
function useLint(draft: Draft): { readonly linted: Linted; readonly run: () => void } {
  const [linted, setLinted] = useState<Linted>({ answer: undefined, problem: undefined, isRunning: false });
  const asked = useRef(0);
  const isEmpty = draft.mode === "form" ? draft.goal.trim() === "" : draft.text.trim() === "";
  const ask = (isRun: boolean): void => {
    asked.current += 1;
    const mine = asked.current;
    setLinted((before) => ({ ...before, isRunning: isRun }));
    api()
      // As text, mistakes come with their line.
      .tasks.lint({
        ...(draft.mode === "form" ? { spec: asYaml(specOf(draft)), format: "yaml" } : written(draft)),
        ...(isRun ? { run: true } : {}),
      })
      .then(
        (answer) => mine === asked.current && setLinted({ answer, problem: undefined, isRunning: false }),
        (error: unknown) =>
          mine === asked.current && setLinted({ answer: undefined, problem: asError(error), isRunning: false }),
      )
      .catch(() => undefined);
  };
  useEffect(() => {
    if (isEmpty) return undefined;
    const timer = setTimeout(() => ask(false), LINT_AFTER_MS);
    return () => clearTimeout(timer);
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [draft]);
  return { linted, run: () => ask(true) };
}
