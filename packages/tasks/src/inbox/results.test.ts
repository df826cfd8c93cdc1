import { mkdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { NO_USAGE, type TaskEventBody } from "@heddle/protocol";
import { openTestInbox, order } from "../../test/test-inbox.ts";
import { eventually } from "../../test/test-store.ts";

describe("answers", () => {
  const claimedByUser: TaskEventBody = { type: "task.claimed", v: 1, attempt: 1, by: "user", summary: "all done" };

  const end = { turnId: "t", status: "completed", usage: NO_USAGE, durationMs: 1 } as const;
  const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
  const turnWithoutPrice: readonly TaskEventBody[] = [
    { type: "task.taken", v: 1, attempt: 1, holder },
    { type: "task.prepared", v: 1, attempt: 1, threadId: "thr", folder: "/" },
    { type: "task.prompted", v: 1, attempt: 1, round: 1, clientId: "c", why: "first", text: "do it" },
    { type: "task.turn-ended", v: 1, attempt: 1, round: 1, ...end },
  ];

  test("78: the status and the result come in the format of the order", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put("a.json", JSON.stringify({ goal: "x", workspace: t.workspace }));
    await t.put("b.yaml", `goal: x\nworkspace: ${t.workspace}\n`);
    await t.put("c.md", order(t.workspace));
    const tasks = await eventually("three tasks", async () => {
      const found = await t.tasks();
      return found.length === 3 ? found : undefined;
    });
    for (const { id } of tasks) {
      await t.store.journal.append({
        stream: id,
        author: "user:owner",
        events: [...turnWithoutPrice, { type: "task.paused", v: 1, cause: "user", message: "later" }],
      });
    }
    for (const name of ["a.status.json", "b.status.yaml", "c.status.md"]) await t.appears(name);
    expect(JSON.parse(await readFile(path.join(t.folder, "a.status.json"), "utf8"))).toMatchObject({
      task_id: tasks.find(({ spec }) => spec.name === "a")?.id,
      status: "paused",
      reason: "later",
      verified: false,
      // 14: a cost that is not known is not 0.
      spent: { turns: 1, tokens: 0, cost_usd: null },
    });
    for (const { id } of tasks) {
      await t.store.journal.append({
        stream: id,
        author: "user:owner",
        events: [{ type: "task.cancelled", v: 1, reason: "no more" }],
      });
    }
    for (const name of ["a.result.json", "b.result.yaml", "c.result.md"]) await t.appears(name);
    await eventually(
      "no status is left",
      async () => !(await t.files()).some((name) => name.includes(".status.")) || undefined,
    );
    expect(await readFile(path.join(t.folder, "b.result.yaml"), "utf8")).toContain(
      "status: cancelled\nverified: false\n",
    );
    const page = await readFile(path.join(t.folder, "c.result.md"), "utf8");
    expect(page).toContain("# c: cancelled\n\n> no more\n");
    // Answers are no orders.
    await t.put("marker.md", order(t.workspace));
    await t.appears("marker.md.processed-");
    expect(await t.tasks()).toHaveLength(4);
  });

  test("79, D23: a task that ends while nobody looks still gets its result, once, and the order is not taken again", async () => {
    await using t = await openTestInbox();
    const first = await t.open();
    await t.put("fix.md", order(t.workspace));
    await t.appears("fix.md.processed-");
    await first[Symbol.asyncDispose]();
    const [task] = await t.tasks();
    await t.store.journal.append({ stream: task?.id ?? "", author: "user:owner", events: [claimedByUser] });
    const second = await t.open();
    const result = await t.appears("fix.result.md");
    expect(await readFile(path.join(t.folder, result), "utf8")).toContain(
      "Reported as done. Nothing has checked it.\n\n> all done",
    );
    await second[Symbol.asyncDispose]();
    // Whoever waited has taken it away; it is not written again.
    await rm(path.join(t.folder, result));
    await using _third = await t.open();
    await t.put("marker.md", order(t.workspace));
    await t.appears("marker.md.processed-");
    expect(await t.tasks()).toHaveLength(2);
    expect((await t.files()).filter((name) => name.includes("result"))).toEqual([]);
  });

  test("an earlier order of the same name keeps its result", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    for (const name of ["fix.result.md", "fix.result.1.md"]) {
      await t.put("fix.md", order(t.workspace));
      const task = await eventually("a task that waits", async () =>
        (await t.tasks()).find(({ state }) => state === "pending"),
      );
      await t.store.journal.append({ stream: task.id, author: "user:owner", events: [claimedByUser] });
      await t.appears(name);
      expect(await readFile(path.join(t.folder, name), "utf8")).toContain(task.id);
    }
  });

  test("what lies under the name of an answer and cannot be one keeps its name", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put("fix.result.md", Buffer.alloc(2 * 1024 * 1024));
    await mkdir(path.join(t.folder, "fix.result.1.md"));
    await t.put("fix.md", order(t.workspace));
    await t.appears("fix.md.processed-");
    const [task] = await t.tasks();
    await t.store.journal.append({ stream: task?.id ?? "", author: "user:owner", events: [claimedByUser] });
    await t.appears("fix.result.2.md");
    expect(t.said).toEqual([]);
  });
});
