/** What can be done with a run as it stands, by role and state: each a call that a program could make. */
import type { Task, ThreadDetail, Turn } from "@heddle/protocol/http";
import { api } from "../../live/session.ts";
import { go } from "../../router.ts";

/** What is asked for in a form of its own. */
export type Form = "rename" | "change" | "undo";

export interface Doing {
  readonly name: string;
  readonly key?: string;
  readonly call: (() => Promise<unknown>) | Form;
  /** It cannot be taken back: what is lost, and the same key or button again. */
  readonly asks?: string;
  readonly isMain?: boolean;
}

export interface Subject {
  readonly task: Task | undefined;
  readonly thread: ThreadDetail | undefined;
  readonly openTurn: Turn | undefined;
  readonly isOwner: boolean;
  /** Of who takes a thread over. */
  readonly name: string;
}

export function doings(subject: Subject): readonly Doing[] {
  const { task } = subject;
  return [
    ...turnDoings(subject),
    ...(task === undefined ? [] : [...openDoings(subject, task), ...endedDoings(subject, task)]),
    ...threadDoings(subject),
  ];
}

const TAKEN_OVER = "taken over";

/** It is paused so that a person can speak in its thread. */
export function isTaken({ state, reason }: Pick<Task, "state" | "reason">): boolean {
  return state === "paused" && reason?.startsWith(TAKEN_OVER) === true;
}

function turnDoings({ thread, openTurn }: Subject): readonly Doing[] {
  if (thread === undefined || openTurn === undefined) return [];
  return [
    {
      name: "Interrupt",
      key: "x",
      isMain: true,
      asks: "Interrupt the turn?",
      call: () => api().interruptTurn(thread.id, openTurn.id),
    },
  ];
}

function openDoings({ thread, name }: Subject, task: Task): readonly Doing[] {
  if (task.hasEnded) return [];
  const isPaused = task.state === "paused";
  const { tasks } = api();
  return [
    ...(isPaused
      ? [
          { name: isTaken(task) ? "Give back" : "Resume", key: "p", isMain: true, call: () => tasks.resume(task.id) },
          { name: "Give 2 turns more", call: () => tasks.resume(task.id, { budget: { turns: 2 } }) },
        ]
      : [{ name: "Pause", key: "p", isMain: true, call: () => tasks.pause(task.id) }]),
    ...(isPaused && task.lastCheck?.review !== undefined
      ? [{ name: "Accept the work", isMain: true, asks: "Accept it?", call: () => tasks.accept(task.id) }]
      : []),
    ...(!isPaused && thread !== undefined
      ? [
          {
            name: "Take over",
            key: "t",
            isMain: true,
            asks: "Pause the task and take its thread?",
            call: () => tasks.pause(task.id, { reason: `${TAKEN_OVER} by ${name}` }),
          },
        ]
      : []),
    ...(task.stall?.isOpen === true
      ? [
          {
            name: "Kill the child",
            isMain: true,
            call: () => tasks.relieve(task.id, { action: "kill-child" }),
          },
          { name: "End its input", isMain: true, call: () => tasks.relieve(task.id, { action: "eof" }) },
        ]
      : []),
    { name: "Change name, labels, limits…", call: "change" },
    ...(isPaused && task.attempt > 0 ? [UNDO] : []),
    { name: "Cancel the task", asks: "Cancel it? Its work stays", call: () => tasks.cancel(task.id) },
    {
      name: "End it by my word: claimed, not verified",
      asks: "End it?",
      call: () => tasks.complete(task.id),
    },
  ];
}

const UNDO: Doing = { name: "Undo its work…", call: "undo" };

function endedDoings({ isOwner }: Subject, task: Task): readonly Doing[] {
  if (!task.hasEnded) return [];
  const { tasks } = api();
  const isArchived = task.state === "archived";
  const mayRetry = task.state === "failed" || task.state === "cancelled" || task.state === "claimed";
  const { worktree, agents } = task.spec;
  const mayMerge = task.state === "verified" && worktree !== undefined && agents === undefined;
  return [
    ...(mayRetry ? [{ name: "Try again", key: "r", isMain: true, call: () => tasks.retry(task.id) }] : []),
    ...(mayMerge && task.merged?.how !== "commit"
      ? [
          {
            name: "Merge",
            isMain: true,
            asks: "Merge into the branch that is checked out?",
            call: () => tasks.merge(task.id),
          },
        ]
      : []),
    ...(isArchived
      ? [{ name: "Bring back from the archive", call: () => tasks.unarchive(task.id) }]
      : [
          { name: "Change name, labels, limits…", call: "change" as const },
          ...(task.attempt > 0 ? [UNDO] : []),
          { name: "Archive", call: () => tasks.archive(task.id) },
        ]),
    ...(isOwner
      ? [
          {
            name: "Delete the task",
            asks: "Delete it? Its checks and kept work go, its thread stays",
            call: async () => {
              await tasks.delete(task.id);
              go("/tasks");
            },
          },
        ]
      : []),
  ];
}

function threadDoings({ task, thread, openTurn, isOwner }: Subject): readonly Doing[] {
  if (thread === undefined) return [];
  const fork: Doing = {
    name: "Fork the thread here",
    call: async () => go(`/threads/${(await api().forkThread(thread.id)).id}`),
  };
  const isIdle = openTurn === undefined;
  if (task !== undefined) return isIdle ? [fork] : [];
  return [
    { name: "Rename…", call: "rename" },
    ...(isIdle && thread.turnCount > 0 ? [fork] : []),
    thread.isArchived
      ? { name: "Bring back from the archive", call: () => api().unarchiveThread(thread.id) }
      : { name: "Archive", call: () => api().archiveThread(thread.id) },
    ...(isOwner && isIdle
      ? [
          {
            name: "Delete the thread",
            asks: "Delete all that was said here, for good?",
            call: async () => {
              await api().deleteThread(thread.id);
              go("/threads");
            },
          },
        ]
      : []),
  ];
}
