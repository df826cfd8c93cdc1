/** The queue of tasks and what is asked of it, as tests that any back-end can run. */
import type { EventBody, TaskRecord } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import type { NewStore } from "./journal.suite.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };

type Given = Readonly<Record<string, unknown>>;

function added(name: string, given: Given = {}): EventBody {
  const spec = TaskSpec.parse({ name, workspace: `/${name}`, goal: "g", ...given });
  return { type: "task.created", v: 1, spec, source: { kind: "cli" } };
}

/** Two that work in one folder, one that waits for another, one with labels. */
async function fillTasks(journal: Journal): Promise<(stream: string, ...events: EventBody[]) => Promise<unknown>> {
  const say = (stream: string, ...events: EventBody[]) => journal.append({ stream, author: "system", events });
  await say("task_1", added("first", { workspace: "/same" }));
  await say("task_2", added("second", { workspace: "/same", priority: 5 }));
  await say("task_3", added("third", { labels: ["night"], priority: 1 }));
  await say("task_4", added("fourth", { dependsOn: ["first"] }));
  await say("task_4", { type: "task.waited", v: 1, cause: "dependency", message: "first" });
  return say;
}

const ids = (tasks: readonly TaskRecord[]): string[] => tasks.map(({ id }) => id);

async function answers({ tasks }: Journal): Promise<unknown> {
  return {
    all: await tasks.page({ limit: 100 }),
    counts: await tasks.counts(),
    due: await tasks.due(Date.now() + 1_000, { limit: 100 }),
    held: await tasks.held(),
    waiting: await tasks.waitingFor("dependency"),
    of: await tasks.ofThread("thread"),
  };
}

export function taskSuite(newStore: NewStore): void {
  guardOfFolders(newStore);

  test("14.8: the queue goes by priority and age, one task a folder, and leaves out what is held or waits", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const say = await fillTasks(journal);
    const due = async (): Promise<string[]> => ids(await journal.tasks.due(Date.now() + 1_000, { limit: 10 }));
    expect(await due()).toEqual(["task_2", "task_3", "task_1"]);
    await say("task_2", { type: "task.taken", v: 1, attempt: 1, holder });
    expect(await due()).toEqual(["task_3"]);
    expect(ids(await journal.tasks.held())).toEqual(["task_2"]);
    expect(ids(await journal.tasks.heldIn("/same", { onlyExclusive: true }))).toEqual(["task_2"]);
    expect(ids(await journal.tasks.heldIn("/other", { onlyExclusive: false }))).toEqual([]);
    expect(ids(await journal.tasks.waitingFor("dependency"))).toEqual(["task_4"]);
    expect(ids(await journal.tasks.dependents(["first", "task_1"]))).toEqual(["task_4"]);
    expect(ids(await journal.tasks.dependents(["second"]))).toEqual([]);
    await say("task_2", { type: "task.prepared", v: 1, attempt: 1, threadId: "thread", folder: "/tree" });
    // It works elsewhere now.
    expect(await due()).toEqual(["task_3", "task_1"]);
    expect(ids(await journal.tasks.ofThread("thread"))).toEqual(["task_2"]);
  });

  test("14.8: tasks are found by name, by the beginning of their id, and in pages", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const say = await fillTasks(journal);
    const { tasks } = journal;
    expect(ids(await tasks.named("third", { limit: 2 }))).toEqual(["task_3"]);
    expect(ids(await tasks.beginningWith("task_", { limit: 2 }))).toEqual(["task_1", "task_2"]);
    expect(ids(await tasks.page({ limit: 2 }))).toEqual(["task_4", "task_3"]);
    expect(ids(await tasks.page({ after: "task_3", limit: 9 }))).toEqual(["task_2", "task_1"]);
    expect(ids(await tasks.page({ workspace: "/same", text: "SEC", limit: 9 }))).toEqual(["task_2"]);
    expect(ids(await tasks.page({ label: "night", states: ["pending"], limit: 9 }))).toEqual(["task_3"]);
    await say("task_3", { type: "task.cancelled", v: 1, reason: "no" });
    expect(await tasks.get("task_3")).toMatchObject({ state: "cancelled" });
    expect((await tasks.counts()).cancelled).toBe(1);
    await say("task_3", { type: "task.deleted", v: 1 });
    expect(await tasks.get("task_3")).toBeUndefined();
  });

  test("19.4: a task that needs something is due for a worker that has all of it, and for one that is not asked", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const say = await fillTasks(journal);
    await say("task_5", added("fifth", { needs: ["gpu", "big"], priority: 9 }));
    const due = async (labels?: string[]): Promise<string[]> =>
      ids(await journal.tasks.due(Date.now() + 1_000, { limit: 2, labels }));
    expect(await due([])).toEqual(["task_2", "task_3"]);
    expect(await due(["gpu"])).toEqual(["task_2", "task_3"]);
    expect(await due(["big", "gpu", "arm64"])).toEqual(["task_5", "task_2"]);
    expect(await due()).toEqual(["task_5", "task_2"]);
  });

  test("14.8: an event that the machine refuses changes nothing, and every answer rebuilds equal", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const say = await fillTasks(journal);
    const before = await journal.tasks.get("task_1");
    await say("task_1", { type: "task.verified", v: 1, attempt: 1 });
    expect(await journal.tasks.get("task_1")).toEqual(before);
    const told = await answers(journal);
    await journal.rebuildProjections();
    expect(await answers(journal)).toEqual(told);
  });
}

function guardOfFolders(newStore: NewStore): void {
  test("19.1: of tasks that exclude each other in a folder one is taken, whoever comes first, and refused ones write nothing", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using second = await store.open();
    const say = await fillTasks(journal);
    await say("task_5", added("shared", { workspace: "/same", exclusive: false }));
    await say("task_6", added("shared too", { workspace: "/same", exclusive: false }));
    const take = (by: Journal, stream: string, isExclusive = true) =>
      by.append({
        stream,
        author: "system",
        events: [{ type: "task.taken", v: 1, attempt: 1, holder }],
        expectedVersion: 1,
        guard: { kind: "folder-free", folder: "/same", isExclusive },
      });
    const both = await Promise.allSettled([
      take(journal, "task_1"),
      take(journal, "task_2"),
      take(second, "task_1"),
      take(second, "task_2"),
    ]);
    expect(both.filter(({ status }) => status === "fulfilled").length).toBe(1);
    const held = await journal.tasks.held();
    expect(held).toHaveLength(1);
    const id = held[0]?.id ?? "";
    const version = await journal.version(id);
    await expect(take(journal, "task_5", false)).rejects.toMatchObject({
      code: "task.folder-busy",
      details: { folder: "/same", by: id },
    });
    expect(await journal.version("task_5")).toBe(1);
    // Taken over from a dead worker: it is not in its own way.
    await second.append({
      stream: id,
      author: "system",
      events: [{ type: "task.taken", v: 1, attempt: 2, holder }],
      expectedVersion: version,
      guard: { kind: "folder-free", folder: "/same", isExclusive: true },
    });
    await say(id, { type: "task.retried", v: 1, attempt: 2, reason: "given back" });
    await take(journal, "task_5", false);
    await take(second, "task_6", false);
    await expect(take(second, id === "task_1" ? "task_2" : "task_1")).rejects.toMatchObject({
      code: "task.folder-busy",
    });
  });
}
