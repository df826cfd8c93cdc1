/** What can be done with a task as it stands. What does not fit its state, or one's role, is not offered. */
import type { Task, Turn } from "@heddle/protocol/http";
import { useEffect, useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { api } from "../../live/session.ts";
import { PressButton, Refusal, useAct, type Act } from "../../parts/act.tsx";
import { Kbd } from "../../parts/base.tsx";
import { useKeys, type Keys } from "../../parts/keys.ts";
import { Menu, type MenuEntry } from "../../parts/menu.tsx";
import { go } from "../../router.ts";

interface Doing {
  readonly name: string;
  readonly key?: string;
  readonly call: () => Promise<unknown>;
  /** It cannot be taken back: the same key or button again. */
  readonly asks?: string;
  readonly isMain?: boolean;
}

interface ActsProps {
  readonly task: Task | undefined;
  readonly threadId: string | undefined;
  readonly openTurn: Turn | undefined;
}

const ASK_AGAIN_MS = 4_000;

export function RunActs({ task, threadId, openTurn }: ActsProps): ReactNode {
  const act = useAct();
  const { server } = useFacts();
  const { name = "", role = "viewer" } = server.data?.principal ?? {};
  const all = role === "viewer" ? [] : doings({ task, threadId, openTurn }, name);
  const main = all.filter(({ isMain }) => isMain === true);
  const rest = all.filter(({ isMain }) => isMain !== true);
  const [asked, setAsked] = useState<string>();
  useEffect(() => {
    if (asked === undefined) return undefined;
    const timer = setTimeout(() => setAsked(undefined), ASK_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  const run = (doing: Doing): void => {
    if (doing.asks !== undefined && asked !== doing.name) {
      setAsked(doing.name);
      return;
    }
    setAsked(undefined);
    act.run(doing.name, doing.call);
  };
  useKeys(keysOf(all, run));
  return (
    <>
      <div className="row wide gap6">
        {main.map((doing) => (
          <DoButton key={doing.name} doing={doing} act={act} isAsked={asked === doing.name} onRun={() => run(doing)} />
        ))}
      </div>
      <Menu
        label="More"
        entries={[
          ...entriesOf([...main, ...rest], act),
          ...copies(task, threadId, act),
          ...(role === "owner" && task !== undefined ? ownerEntries(task, act) : []),
        ]}
      />
      <Refusal act={act} />
    </>
  );
}

function keysOf(all: readonly Doing[], run: (doing: Doing) => void): Keys {
  return Object.fromEntries(all.flatMap((doing) => (doing.key === undefined ? [] : [[doing.key, () => run(doing)]])));
}

/** The menu asks for itself. */
function entriesOf(all: readonly Doing[], act: Act): readonly MenuEntry[] {
  return all.map(({ name, asks, call }) => ({
    name,
    run: () => act.run(name, call),
    ...(asks === undefined ? {} : { asks, isBad: true }),
  }));
}

function DoButton({
  doing,
  act,
  isAsked,
  onRun,
}: {
  doing: Doing;
  act: Act;
  isAsked: boolean;
  onRun: () => void;
}): ReactNode {
  return (
    <PressButton act={act} name={doing.name} className={isAsked ? "btn bad" : "btn quiet"} onPress={onRun}>
      {isAsked ? doing.asks : doing.name} {doing.key === undefined ? null : <Kbd>{doing.key.toUpperCase()}</Kbd>}
    </PressButton>
  );
}

const TAKEN_OVER = "taken over";

/** It is paused so that a person can speak in its thread. */
export function isTaken({ state, reason }: Pick<Task, "state" | "reason">): boolean {
  return state === "paused" && reason?.startsWith(TAKEN_OVER) === true;
}

function doings({ task, threadId, openTurn }: ActsProps, name: string): readonly Doing[] {
  const found: Doing[] = [];
  const isEnded = task?.hasEnded ?? false;
  const isPaused = task?.state === "paused";
  if (task !== undefined && !isEnded && !isPaused)
    found.push({ name: "Pause", key: "p", isMain: true, call: () => api().tasks.pause(task.id) });
  if (threadId !== undefined && openTurn !== undefined)
    found.push({
      name: "Interrupt",
      key: "x",
      isMain: true,
      asks: "Interrupt the turn?",
      call: () => api().interruptTurn(threadId, openTurn.id),
    });
  if (task !== undefined && isPaused) {
    found.push({
      name: isTaken(task) ? "Give back" : "Resume",
      key: "p",
      isMain: true,
      call: () => api().tasks.resume(task.id),
    });
    found.push({ name: "Give 2 turns more", call: () => api().tasks.resume(task.id, { budget: { turns: 2 } }) });
    if (task.lastCheck?.review !== undefined)
      found.push({
        name: "Accept the work",
        isMain: true,
        asks: "Accept it?",
        call: () => api().tasks.accept(task.id),
      });
  }
  if (task !== undefined && !isEnded && !isPaused && threadId !== undefined)
    found.push({
      name: "Take over",
      key: "t",
      isMain: true,
      asks: "Pause the task and take its thread?",
      call: () => api().tasks.pause(task.id, { reason: `${TAKEN_OVER} by ${name}` }),
    });
  if (
    task !== undefined &&
    (task.state === "failed" || task.state === "cancelled" || (task.state === "claimed" && isEnded))
  )
    found.push({ name: "Try again", key: "r", isMain: true, call: () => api().tasks.retry(task.id) });
  if (task?.stall?.isOpen === true)
    for (const [label, action] of [
      ["Kill the child", "kill-child"],
      ["End its input", "eof"],
    ] as const)
      found.push({ name: label, isMain: true, call: () => api().tasks.relieve(task.id, { action }) });
  if (task !== undefined && !isEnded) {
    found.push({ name: "Cancel the task", asks: "Cancel it?", call: () => api().tasks.cancel(task.id) });
    found.push({
      name: "End it by my word: claimed, not verified",
      asks: "End it?",
      call: () => api().tasks.complete(task.id),
    });
  }
  if (task !== undefined && isEnded && task.state !== "archived")
    found.push({ name: "Archive", call: () => api().tasks.archive(task.id) });
  if (task?.state === "archived")
    found.push({ name: "Bring back from the archive", call: () => api().tasks.unarchive(task.id) });
  if (threadId !== undefined && openTurn === undefined)
    found.push({
      name: "Fork the thread here",
      call: async () => go(`/threads/${(await api().forkThread(threadId)).id}`),
    });
  return found;
}

function ownerEntries(task: Task, act: Act): readonly MenuEntry[] {
  if (!task.hasEnded) return [];
  return [
    {
      name: "Delete the task",
      asks: "Delete it and what it says?",
      isBad: true,
      run: () =>
        act.run("Delete", async () => {
          await api().tasks.delete(task.id);
          go("/tasks");
        }),
    },
  ];
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
