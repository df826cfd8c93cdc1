import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { newThreadId, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import { parse } from "yaml";
import { openTestInbox, type TestInbox } from "../../../test/test-inbox.ts";
import { eventually } from "../../../test/test-store.ts";
import { docx, paragraph, row, table } from "../../../test/word-document.ts";
import { openTasks } from "../../open-tasks.ts";
import { readOrderFile } from "../order-file.ts";
import { takeOrder } from "../take-order.ts";
import { readDocumentTable } from "./document-table.ts";
import { writeDocument } from "./write-document.ts";

async function tasksOf(t: TestInbox, count: number): Promise<readonly TaskRecord[]> {
  return eventually(`${count} tasks`, async () => {
    const found = await t.tasks();
    return found.length === count ? found : undefined;
  });
}

async function happen(t: TestInbox, tasks: readonly TaskRecord[], events: readonly TaskEventBody[]): Promise<void> {
  for (const { id } of tasks) await t.store.journal.append({ stream: id, author: "user:owner", events: [...events] });
}

/** As somebody types it into Word, who begins keys with a capital and stops in the middle of words. */
const byHand = (workspace: string): Buffer =>
  docx(
    [
      paragraph("Please do this today."),
      table(
        row("Field", "Value"),
        row("Title", "Fix the login"),
        row("Workspace", workspace),
        row(
          "Goal",
          '<w:p><w:r><w:t>The but</w:t></w:r><w:proofErr w:type="spellStart"/><w:r><w:rPr><w:i/></w:rPr><w:t xml:space="preserve">ton does “nothing” &amp; </w:t></w:r><w:r><w:t>hangs.</w:t></w:r></w:p><w:p><w:r><w:tab/><w:t>Fix it.</w:t></w:r></w:p>',
        ),
        row("Acceptance", `${paragraph("works: always")}${paragraph("by keyboard")}`),
        row("Checks", paragraph("tests: npm test")),
        row("Priority", "2"),
        row("Model", ""),
      ),
    ].join(""),
  );

const SAID = (workspace: string) => ({
  name: "Fix the login",
  workspace,
  goal: "The button does “nothing” & hangs.\n\tFix it.",
  acceptance: ["works: always", "by keyboard"],
  checks: [{ tests: "npm test" }],
  priority: 2,
});

const check = { kind: "tests", startedAt: 1, durationMs: 2 } as const;
const REJECTED: readonly TaskEventBody[] = [
  { type: "task.taken", v: 1, attempt: 1, holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" } },
  { type: "task.prepared", v: 1, attempt: 1, threadId: newThreadId(), folder: "/tmp/work" },
  { type: "task.prompted", v: 1, attempt: 1, round: 1, clientId: "c", why: "first", text: "go" },
  { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: "Done:\n\n  - all <of> it\n\tand “more”" },
  {
    type: "task.checked",
    v: 1,
    attempt: 1,
    round: 1,
    results: [
      { ...check, name: "npm test", outcome: "failed", message: "3 of 4: no" },
      { ...check, name: "true", outcome: "passed", message: "" },
    ],
    violations: [{ kind: "protected-removed", path: "a.test.ts", message: "a.test.ts is gone" }],
    passed: false,
  },
  { type: "task.rejected", v: 1, attempt: 1, failing: ["npm test"] },
];

test("78: a document becomes the task that JSON would become, and its status and result say in a document what JSON says", async () => {
  await using t = await openTestInbox();
  await using _inbox = await t.open();
  await t.put("hand.docx", byHand(t.workspace));
  await t.put("ours.docx", writeDocument(SAID(t.workspace)));
  await t.put("same.json", JSON.stringify(SAID(t.workspace)));
  const tasks = await tasksOf(t, 3);
  const [first, ...others] = tasks.map(({ spec }) => spec);
  expect(first).toMatchObject({ ...SAID(t.workspace), checks: [{ kind: "tests", run: "npm test" }] });
  for (const spec of others) expect(spec).toEqual(first);

  const told = async (what: string): Promise<void> => {
    const facts: Readonly<Record<string, unknown>> = JSON.parse(
      await readFile(path.join(t.folder, await t.appears(`same.${what}.json`)), "utf8"),
    );
    for (const name of ["hand", "ours"]) {
      const bytes = await readFile(path.join(t.folder, await t.appears(`${name}.${what}.docx`)));
      const rows = readDocumentTable(bytes).map(
        ({ key, text }) => [key, typeof facts[key] === "string" ? text : parse(text)] as const,
      );
      const own = tasks.find(({ source }) => source.ref?.endsWith(`${name}.docx`));
      expect(rows.map(([key]) => key)).toEqual(Object.keys(facts));
      expect(Object.fromEntries(rows)).toEqual({
        ...facts,
        task_id: own?.id,
        timestamp: expect.stringMatching(/^\d{4}-/),
      });
    }
  };
  await happen(t, tasks, [...REJECTED, { type: "task.paused", v: 1, cause: "user", message: "later" }]);
  await told("status");
  await happen(t, tasks, [{ type: "task.cancelled", v: 1, reason: "no more" }]);
  await t.appears("same.result.json");
  await told("result");
  await eventually(
    "no status is left",
    async () => !(await t.files()).some((name) => name.includes(".status.")) || undefined,
  );
  // Answers are no orders, and nothing went wrong on the way.
  expect(await t.tasks()).toHaveLength(3);
  expect(t.said).toEqual([]);
});

test("78: what is wrong with a key of a document is told with its row", async () => {
  await using t = await openTestInbox();
  await using _inbox = await t.open({ defaultWorkspace: t.workspace });
  await t.put(
    "typo.docx",
    docx(table(row("goal", "x"), row("heading"), row("Modell", "* m: n: o"), row("priority", "high"))),
  );
  const reason = await t.appears("typo.docx.error-parse-failed.reason.txt");
  const told = await readFile(path.join(t.folder, reason), "utf8");
  expect(told).toContain('typo.docx:3:1: unknown key "Modell"; did you mean "model"?');
  expect(told).toContain("typo.docx:4:1: priority must be a number");
});

test("78: a document that a client names by its path becomes a task too, with the thread it says", async () => {
  await using t = await openTestInbox();
  const { journal } = t.store;
  const thread = newThreadId();
  const created = { type: "thread.created", v: 1, workspace: t.workspace, origin: "test" } as const;
  await journal.append({ stream: thread, author: "user:owner", events: [created] });
  await t.put("fix.docx", docx(table(row("goal", "x"), row("Session ID", thread))));
  const order = await readOrderFile(path.join(t.folder, "fix.docx"), [t.folder]);
  const { task } = await takeOrder(
    { journal, tasks: openTasks({ journal }).as("user:owner") },
    { ...order, source: { kind: "http" } },
  );
  expect(task.spec).toMatchObject({ name: "fix", goal: "x", thread, workspace: t.workspace });
});
