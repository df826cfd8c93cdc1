import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { newThreadId } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { openTestStore, type TestStore } from "../../test/test-store.ts";
import { openTasks } from "../open-tasks.ts";
import { withFrontMatter } from "./legacy-head.ts";
import { readOrderFile } from "./order-file.ts";
import { takeOrder, type Order, type OrderDoor } from "./take-order.ts";

interface TestTaskDoor extends AsyncDisposable {
  readonly store: TestStore;
  readonly folder: (name: string) => Promise<string>;
  /** The spec of the task that the text becomes. */
  take(text: string, order?: Partial<Order>, door?: Partial<OrderDoor>): Promise<TaskSpec>;
  thread(workspace: string): Promise<string>;
}

async function openTaskDoor(): Promise<TestTaskDoor> {
  const store = await openTestStore();
  const { journal } = store;
  return {
    store,
    async folder(name) {
      const made = path.join(store.folder, name);
      await mkdir(made, { recursive: true });
      return made;
    },
    async take(text, order = {}, door = {}) {
      const { task } = await takeOrder(
        { journal, tasks: openTasks({ journal }).as("user:owner"), ...door },
        { file: "order.md", text, source: { kind: "http" }, ...order },
      );
      return task.spec;
    },
    async thread(workspace) {
      const id = newThreadId();
      await journal.append({
        stream: id,
        author: "user:owner",
        events: [{ type: "thread.created", v: 1, workspace, origin: "test" }],
      });
      return id;
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

describe("63: lines of key: value at the head of a page", () => {
  test("are read as front matter, with the title as the name", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const spec = await taskDoor.take(
      `# Fix the login\nworkspace: \`${workspace}\`\nmode: normal\nagent: opencode\ncheck_interval: 5m\n\n## goal\nDo it.\n\n## acceptance\n- [ ] works\n\n## steps\n1. one\n- two\n`,
    );
    expect(spec).toMatchObject({
      name: "Fix the login",
      workspace,
      goal: "Do it.",
      acceptance: ["works"],
      steps: [{ title: "one" }, { title: "two" }],
    });
  });

  test("66, D9: end at the first line that is none of them; after it everything is text", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const goal = "abort: true\nagent: must be kept\n# not a title\nworkspace: /etc\nsession: 7";
    expect(await taskDoor.take(`workspace: ${workspace}\n## goal\n${goal}\n`)).toMatchObject({
      goal,
      workspace,
      abort: false,
    });
    expect(await taskDoor.take(`workspace: ${workspace}\nFirst words.\n${goal}\n`)).toMatchObject({
      goal: `First words.\n${goal}`,
      workspace,
      abort: false,
    });
    const front = `---\nworkspace: ${workspace}\n---\n${goal}\n`;
    expect(await taskDoor.take(front)).toMatchObject({ goal, workspace, abort: false });
  });

  test("67: indentation and fences of the goal stay", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const goal = "Run this:\n\n```sh\n\tif true; then\n    echo '## goal'\n## steps\n```\n\n    indented";
    expect((await taskDoor.take(`workspace: ${workspace}\n\n## goal\n${goal}\n`)).goal).toBe(goal);
  });

  test("68, D10: without a heading the page is the goal", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    expect(await taskDoor.take(`workspace: ${workspace}\n\nJust do it.\nAnd that.\n`)).toMatchObject({
      goal: "Just do it.\nAnd that.",
      name: "Just do it.",
    });
  });

  test("what is wrong further down keeps its line", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const page = `# Name\n\nworkspace: ${workspace}\n\n## goal\nx\n\n## checks\n- nonsense: 1\n`;
    await expect(taskDoor.take(page)).rejects.toThrow(/order\.md:9:/);
  });

  test("a page without such lines, and one with front matter, stays as it is", () => {
    for (const page of [
      "Do it.\n",
      "# Title\n\nnote: do it\n",
      "---\nworkspace: /w\n---\nsession: 7\n",
      "---\nunclosed: 1\n",
    ]) {
      expect(withFrontMatter(page)).toBe(page);
    }
    expect(withFrontMatter("\uFEFFworkspace: '/a b'\r\nabort: YES\r\n\r\ntext\r\n")).toBe(
      '---\n{"workspace":"/a b","abort":true}\n---\ntext\n',
    );
  });
});

describe("64: who says where it runs", () => {
  test("for the workspace: the order, what came with it, its thread, the default", async () => {
    await using taskDoor = await openTaskDoor();
    const [own, sent, threads, byDefault] = await Promise.all(
      ["own", "sent", "threads", "default"].map(taskDoor.folder),
    );
    if (own === undefined || sent === undefined || threads === undefined || byDefault === undefined)
      throw new Error("never");
    const thread = await taskDoor.thread(threads);
    const door = { defaultWorkspace: byDefault };
    const workspaceOf = async (text: string, order: Partial<Order>): Promise<string> =>
      (await taskDoor.take(text, order, door)).workspace;
    expect(await workspaceOf(`workspace: ${own}\nthread: ${thread}\nx`, { workspace: sent })).toBe(own);
    expect(await workspaceOf(`thread: ${thread}\nx`, { workspace: sent })).toBe(sent);
    expect(await workspaceOf(`thread: ${thread}\nx`, {})).toBe(threads);
    expect(await workspaceOf(`x`, { thread })).toBe(threads);
    expect(await workspaceOf(`x`, {})).toBe(byDefault);
    await expect(taskDoor.take("x")).rejects.toThrow("there is no workspace; write workspace: /the/folder");
  });

  test("for the thread: the order, what came with it, the default; file and HTTP alike", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const [own, sent, byDefault] = [
      await taskDoor.thread(workspace),
      await taskDoor.thread(workspace),
      await taskDoor.thread(workspace),
    ];
    const door = { defaultThread: byDefault };
    const threadOf = async (text: string, order: Partial<Order>): Promise<string | undefined> =>
      (await taskDoor.take(text, order, door)).thread;
    for (const source of [{ kind: "inbox" }, { kind: "http" }] as const) {
      expect(await threadOf(`session: "${own}"\nx`, { thread: sent, source })).toBe(own);
      expect(await threadOf(`session id: ${own}\nx`, { thread: sent, source })).toBe(own);
      expect(await threadOf(`---\nthread: ${own}\n---\nx`, { thread: sent, source })).toBe(own);
      expect(await threadOf(`x`, { thread: sent, source })).toBe(sent);
      expect(await threadOf(`x`, { source })).toBe(byDefault);
    }
    expect((await taskDoor.take(`workspace: ${workspace}\nx`)).thread).toBeUndefined();
    await expect(taskDoor.take(`thread: ${newThreadId()}\nx`)).rejects.toMatchObject({ code: "thread.not-found" });
  });

  test("65, 77: abort takes over the thread from the tasks that were there", async () => {
    await using taskDoor = await openTaskDoor();
    const thread = await taskDoor.thread(await taskDoor.folder("w"));
    const { journal } = taskDoor.store;
    const door = { journal, tasks: openTasks({ journal }).as("user:owner") };
    const order = (text: string): Order => ({ file: "order.md", text, source: { kind: "http" } });
    const { task: first } = await takeOrder(door, order(`thread: ${thread}\nfirst`));
    // What runs there is known by its thread once it has begun.
    const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
    const baseline = { takenAt: 1, folder: "/w", files: {} } as never;
    await taskDoor.store.happen(
      [
        { type: "task.taken", v: 1, attempt: 1, holder },
        { type: "task.prepared", v: 1, attempt: 1, threadId: thread, folder: "/w", baseline },
      ],
      { id: first.id },
    );
    const { task: second } = await takeOrder(door, order(`session: ${thread}\nabort: true\nsecond`));
    expect(second.spec).toMatchObject({ thread, abort: true, goal: "second" });
    expect(await journal.tasks.get(first.id)).toMatchObject({ state: "cancelled", replacedBy: second.id });
    expect((await taskDoor.take(`workspace: ${await taskDoor.folder("w")}\nabort: true\nx`)).abort).toBe(false);
  });

  test("the same key again answers the first task; with other words it is refused", async () => {
    await using taskDoor = await openTaskDoor();
    const workspace = await taskDoor.folder("w");
    const { journal } = taskDoor.store;
    const door = { journal, tasks: openTasks({ journal }).as("user:owner") };
    const order = (text: string): Order => ({
      file: "order.md",
      text: `workspace: ${workspace}\n${text}`,
      source: { kind: "http" },
      key: "k",
    });
    const first = await takeOrder(door, order("x"));
    expect((await takeOrder(door, order("x"))).task.id).toBe(first.task.id);
    await expect(takeOrder(door, order("y"))).rejects.toMatchObject({ code: "store.id-conflict" });
  });
});

describe("76, D16: an order named by its path", () => {
  test("is read where orders lie, and nowhere else", async () => {
    await using taskDoor = await openTaskDoor();
    const inbox = await taskDoor.folder("inbox");
    const evil = await taskDoor.folder("inbox-evil");
    await writeFile(path.join(inbox, "in.md"), "Do it.");
    await writeFile(path.join(evil, "out.md"), "secret");
    await symlink(path.join(evil, "out.md"), path.join(inbox, "link.md"));
    await symlink(evil, path.join(inbox, "linked"));
    const { text, file } = await readOrderFile(path.join(inbox, "in.md"), [inbox]);
    expect([file, Buffer.from(text).toString()]).toEqual(["in.md", "Do it."]);
    for (const out of [
      "/etc/passwd",
      path.join(evil, "out.md"),
      path.join(inbox, "linked", "out.md"),
      path.join(inbox, "link.md"),
      `${inbox}/../inbox-evil/out.md`,
      path.join(inbox, "none.md"),
      "in.md",
      inbox,
    ]) {
      await expect(readOrderFile(out, [inbox]), out).rejects.toMatchObject({ code: "task.invalid" });
    }
    await expect(readOrderFile(path.join(inbox, "in.md"), [])).rejects.toMatchObject({ code: "task.invalid" });
  });
});
