/** docs/use/inbox.md and examples/inbox: every order they show becomes a task. */
import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { newThreadId, type TaskRecord } from "@heddle/protocol";
import { openTestStore } from "../../test/test-store.ts";
import { openTasks } from "../open-tasks.ts";
import { orderFromDocument } from "./docx/order-from-document.ts";
import { takeOrder } from "./take-order.ts";

const ROOT = path.join(import.meta.dirname, "../../../..");

test("every order of the page, and every example, becomes the task it says", async () => {
  await using store = await openTestStore();
  const { journal } = store;
  const workspace = path.join(store.folder, "project");
  await mkdir(workspace);
  const thread = newThreadId();
  const created = { type: "thread.created", v: 1, workspace, origin: "test" } as const;
  await journal.append({ stream: thread, author: "user:owner", events: [created] });
  const take = async (file: string, text: string): Promise<TaskRecord> => {
    const here = text.replaceAll("/home/ada/project", workspace).replaceAll(/019a0000-[0-9a-f-]+/g, thread);
    const door = { journal, tasks: openTasks({ journal }).as("user:owner") };
    return (await takeOrder(door, { file, text: here, source: { kind: "inbox" } })).task;
  };

  const page = await readFile(path.join(ROOT, "docs/use/inbox.md"), "utf8");
  const blocks = [...page.matchAll(/^```md\n([^]*?)^```$/gm)].map(([, text = ""]) => text);
  const shown = await Promise.all(blocks.map((text) => take("order.md", text)));
  expect(shown.map(({ spec }) => spec)).toMatchObject([
    { name: "Fix the login", workspace, checks: [{ kind: "tests" }], goal: expect.stringMatching(/^The button/) },
    { name: "Fix the login", workspace, thread, abort: true, goal: expect.stringContaining("abort: false is part") },
  ]);

  const examples = path.join(ROOT, "examples/inbox");
  const names = (await readdir(examples)).toSorted();
  const specs = [];
  for (const name of names) {
    const bytes = await readFile(path.join(examples, name));
    // Only text can be made to name a folder of this machine.
    const isDocument = name.endsWith(".docx");
    const text = isDocument ? orderFromDocument(name, bytes) : bytes.toString();
    specs.push((await take(isDocument ? "order.yaml" : name, text)).spec);
  }
  expect(names).toEqual(["fix.md", "legacy.txt", "order.docx", "order.json", "order.yaml"]);
  expect(specs).toMatchObject([
    { name: "Fix the login", goal: expect.stringContaining("```sh\n    npm test -- login\n```"), labels: ["inbox"] },
    {
      name: "Fix the login",
      thread,
      abort: true,
      goal: expect.stringMatching(/agent: this line.*\nabort: false$/),
      steps: [{ title: "find out why" }, { title: "fix it" }],
      acceptance: ["it works with the keyboard"],
    },
    { name: "fix the login", goal: "The button does nothing since yesterday.\nFix it.", checks: [{ kind: "tests" }] },
    { name: "fix the login", goal: "The button does nothing. Fix it." },
    { name: "fix the login", checks: [{ kind: "tests" }] },
  ]);
});
