/** Questions of agents on the page Now: seen at once, answered once, by one person. */
import { existsSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { figure } from "../world.ts";
import { cancelAll, comesTo, folderOf, heardOf, orderQuestion } from "./orders.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage[Symbol.asyncDispose]());
afterEach(() => cancelAll(stage));

/** What a person is promised; the fastest of several, because the machine may be busy with something else. */
const SEEN_WITHIN_MS = 300;

async function asked(threadId: string) {
  const { data } = await stage.server.client.listApprovals(threadId);
  return data[0];
}

test("a question appears within 300 ms of its event, and Allow once answers it once", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const waits: number[] = [];
  for (const mark of ["first", "second", "third"]) {
    await page.evaluate((name) => {
      const seen = globalThis as unknown as { seenAt: number };
      seen.seenAt = 0;
      const watcher = new MutationObserver(() => {
        if (!document.body.textContent.includes(`touch ${name}.txt`)) return;
        seen.seenAt = Date.now();
        watcher.disconnect();
      });
      watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
    }, mark);
    const { id } = await orderQuestion(stage, mark);
    const row = page.locator("li.ask", { hasText: `touch ${mark}.txt` });
    await row.waitFor();
    const task = await stage.server.client.tasks.read(id);
    const question = await asked(task.threadId ?? "");
    expect(question).toMatchObject({ question: { kind: "command", command: `touch ${mark}.txt` } });
    const seenAt = await page.evaluate(() => (globalThis as unknown as { seenAt: number }).seenAt);
    waits.push(seenAt - (question?.askedAt ?? 0));
    expect(await page.title()).toMatch(/^1 wait/);
    const allow = row.getByRole("button", { name: /^Allow once/ });
    // A press meant for what was there before does nothing: it is dead for a moment.
    await allow.click();
    await row.waitFor({ state: "detached" });
    await comesTo(stage, id, "verified");
    expect(await heardOf(stage, task.threadId ?? "", "approval.resolved")).toMatchObject([
      { body: { decision: "accept" } },
    ]);
  }
  figure(`a question is seen after ${waits.join(", ")} ms`);
  expect(Math.min(...waits)).toBeLessThanOrEqual(SEEN_WITHIN_MS);
});

test("what is denied with words is not run, and the agent is told the words", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = await orderQuestion(stage, "denied");
  const row = page.locator("li.ask", { hasText: "touch denied.txt" });
  await row.getByRole("button", { name: /^Deny…/ }).click();
  await row.getByLabel(/^Why/).fill("use the copy in vendor");
  await row.getByLabel(/^Why/).press("Enter");
  await row.waitFor({ state: "detached" });
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  expect((await heardOf(stage, threadId, "approval.resolved")).at(-1)).toMatchObject({
    body: { decision: "decline", reason: "use the copy in vendor" },
  });
  await expect
    .poll(() => stage.model.requests.some(({ source }) => source.includes("use the copy in vendor")))
    .toBe(true);
  expect(existsSync(path.join(folderOf(stage, "denied"), "denied.txt"))).toBe(false);
});

test("a question that somebody else answered goes, and a press that comes too late says so", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = await orderQuestion(stage, "elsewhere");
  const row = page.locator("li.ask", { hasText: "touch elsewhere.txt" });
  await row.waitFor();
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  const question = await asked(threadId);
  // The refusal stays for as long as the page does not know that the question is gone.
  const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
  await page.route("**/api/approvals", async (route) => {
    await isRead;
    await route.continue();
  });
  // The page hears of the answer only after it has sent its own.
  await page.route("**/approvals/*", async (route) => {
    await stage.server.client.answerApproval(threadId, question?.id ?? "", "decline");
    await route.continue();
  });
  await row.getByRole("button", { name: /^Allow once/ }).click();
  await row.getByRole("alert").waitFor();
  expect(await row.getByRole("alert").textContent()).toMatch(/approval\.already-resolved/);
  read();
  await row.waitFor({ state: "detached" });
});

test("by keyboard alone: the morning's question is chosen, read and allowed", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = await orderQuestion(stage, "keys");
  const row = page.locator("li.ask.sel", { hasText: "touch keys.txt" });
  await row
    .getByRole("button", { name: /^Allow once/ })
    .and(page.locator(":enabled"))
    .waitFor();
  await page.keyboard.press("a");
  await row.waitFor({ state: "detached" });
  await comesTo(stage, id, "verified");
});
