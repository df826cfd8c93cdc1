/** The acts of a run: buttons for the first of them, a menu for all. What does not fit its state, or one's role, is not offered. */
import type { Task, ThreadDetail, Turn } from "@heddle/protocol/http";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { PressButton, Refusal, useAct, type Act } from "../../parts/act.tsx";
import { Kbd } from "../../parts/base.tsx";
import { useKeys, type Keys } from "../../parts/keys.ts";
import { Menu, type MenuEntry } from "../../parts/menu.tsx";
import { doings, type Doing, type Form } from "./doings.ts";

const ActForm = lazy(() => import("./act-form.tsx").then((form) => ({ default: form.ActForm })));

interface ActsProps {
  readonly task: Task | undefined;
  readonly thread: ThreadDetail | undefined;
  readonly openTurn: Turn | undefined;
  /** What was changed is asked for again: not every change is told by an event. */
  readonly onDone: () => void;
}

const ASK_AGAIN_MS = 4_000;

export function RunActs({ task, thread, openTurn, onDone }: ActsProps): ReactNode {
  const act = useAct();
  const { server } = useFacts();
  const { name = "", role = "viewer" } = server.data?.principal ?? {};
  const all = role === "viewer" ? [] : doings({ task, thread, openTurn, isOwner: role === "owner", name });
  const [asked, setAsked] = useState<string>();
  const [form, setForm] = useState<Form>();
  useEffect(() => {
    if (asked === undefined) return undefined;
    const timer = setTimeout(() => setAsked(undefined), ASK_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  const carryOut = ({ name: what, call }: Doing): void => {
    if (typeof call === "string") setForm(call);
    else act.run(what, () => call().then(onDone));
  };
  const run = (doing: Doing): void => {
    if (doing.asks !== undefined && asked !== doing.name) {
      setAsked(doing.name);
      return;
    }
    setAsked(undefined);
    carryOut(doing);
  };
  useKeys(keysOf(all, run));
  return (
    <>
      <div className="row wide gap6">
        {all
          .filter(({ isMain }) => isMain === true)
          .map((doing) => (
            <DoButton
              key={doing.name}
              doing={doing}
              act={act}
              isAsked={asked === doing.name}
              onRun={() => run(doing)}
            />
          ))}
      </div>
      <Menu label="More" entries={[...entriesOf(all, carryOut), ...copies(task, thread?.id, act)]} />
      <Refusal act={act} />
      {form === undefined ? null : (
        <Suspense>
          <ActForm form={form} task={task} thread={thread} onClose={() => setForm(undefined)} onDone={onDone} />
        </Suspense>
      )}
    </>
  );
}

function keysOf(all: readonly Doing[], run: (doing: Doing) => void): Keys {
  return Object.fromEntries(all.flatMap((doing) => (doing.key === undefined ? [] : [[doing.key, () => run(doing)]])));
}

/** The menu asks for itself. */
function entriesOf(all: readonly Doing[], run: (doing: Doing) => void): readonly MenuEntry[] {
  return all.map((doing) => ({
    name: doing.name,
    ...(doing.asks === undefined ? {} : { asks: doing.asks, isBad: true }),
    run: () => run(doing),
  }));
}

interface DoButtonProps {
  readonly doing: Doing;
  readonly act: Act;
  readonly isAsked: boolean;
  readonly onRun: () => void;
}

function DoButton({ doing, act, isAsked, onRun }: DoButtonProps): ReactNode {
  return (
    <PressButton act={act} name={doing.name} className={isAsked ? "btn bad" : "btn quiet"} onPress={onRun}>
      {isAsked ? doing.asks : doing.name} {doing.key === undefined ? null : <Kbd>{doing.key.toUpperCase()}</Kbd>}
    </PressButton>
  );
}

function copies(task: Task | undefined, threadId: string | undefined, act: Act): readonly MenuEntry[] {
  const entry = (name: string, text: string): MenuEntry => ({
    name,
    run: () => act.run(name, () => navigator.clipboard.writeText(text)),
  });
  return [
    entry("Copy the address", location.href),
    ...(task === undefined ? [] : [entry("Copy: heddle task show", `heddle task show ${task.id}`)]),
    ...(task?.merged?.how === "branch" ? [entry("Copy: git merge", `git merge ${task.merged.ref}`)] : []),
    ...(threadId === undefined ? [] : [entry("Copy: heddle exec resume", `heddle exec resume ${threadId}`)]),
  ];
}
