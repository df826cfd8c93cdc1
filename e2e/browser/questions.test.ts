/** Questions of agents on the page Now: seen at once, answered once, by one person. */
import { existsSync } from "node:fs";
import path from "node:path";
import { HeddleClient } from "@heddle/client";
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

/** Of another owner, who answers from elsewhere. */
async function clientOf(name: string): Promise<HeddleClient> {
  const { access } = stage.server.client;
  const known = (await access.listTokens()).data.some((token) => token.name === name);
  if (known) await access.revokeToken(name);
  const { token } = await access.createToken({ name, role: "owner" });
  return new HeddleClient({ url: stage.server.url, token });
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

test("a question that somebody else answered says who, on Now and on its run, and then goes", async () => {
  const ada = await clientOf("ada");
  await using seat = await stage.sit();
  const { page } = seat;
  const other = await seat.context.newPage();
  const { id } = await orderQuestion(stage, "by-ada");
  const row = page.locator("li.ask", { hasText: "touch by-ada.txt" });
  await row.waitFor();
  await other.goto(`${stage.server.url}/tasks/${id}`);
  await other.locator(".dock").waitFor();
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  await ada.answerApproval(threadId, (await asked(threadId))?.id ?? "", "decline");
  await row.getByText("denied by ada").waitFor();
  expect(await row.getByRole("button").count()).toBe(0);
  await other.locator(".dock", { hasText: "denied by ada" }).waitFor();
  await row.waitFor({ state: "detached" });
});

test("the next question cannot be answered by a press that was meant for the one before it", async () => {
  await using seat = await stage.sit({ clock: Date.now() });
  const { page } = seat;
  for (const mark of ["front", "behind"]) {
    await orderQuestion(stage, mark);
    await page.locator("li.ask", { hasText: `touch ${mark}.txt` }).waitFor();
  }
  const allow = page.locator("li.ask", { hasText: "touch behind.txt" }).getByRole("button", { name: /^Allow once/ });
  await allow.and(page.locator(":enabled")).waitFor();
  await page.clock.pauseAt(Date.now() + 2_000);
  await page.keyboard.press("a");
  // Selected now, because the first has gone, and off until a moment has passed.
  await expect
    .poll(async () => {
      await page.clock.runFor(20);
      return await allow.evaluate((button: HTMLButtonElement) => [button.classList.contains("pri"), button.disabled]);
    })
    .toEqual([true, true]);
  await page.keyboard.press("a");
  await page.clock.runFor(500);
  await allow.and(page.locator(":enabled")).waitFor();
  const { data } = await stage.server.client.listApprovals();
  expect(data).toMatchObject([{ question: { command: "touch behind.txt" } }]);
});

test("nothing is shown as done before the server has said so", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = await orderQuestion(stage, "slow");
  const row = page.locator("li.ask", { hasText: "touch slow.txt" });
  const allow = row.getByRole("button", { name: /^Allow once/ });
  await allow.and(page.locator(":enabled")).waitFor();
  const { promise: mayGo, resolve: go } = Promise.withResolvers<void>();
  await page.route("**/approvals/*", async (route) => {
    await mayGo;
    await route.continue();
  });
  await allow.click();
  const sending = row.getByRole("button", { name: "sending…" });
  await sending.waitFor();
  expect([await sending.isDisabled(), await row.innerText(), await page.title()]).toEqual([
    true,
    expect.not.stringMatching(/allowed|answered/),
    expect.stringMatching(/^1 waits for you/),
  ]);
  expect((await stage.server.client.tasks.read(id)).state).toBe("waiting");
  go();
  await row.getByText("allowed by you").waitFor();
});

test("a press that comes too late says who was faster", async () => {
  const ada = await clientOf("ada");
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
    await ada.answerApproval(threadId, question?.id ?? "", "decline");
    await route.continue();
  });
  await row.getByRole("button", { name: /^Allow once/ }).click();
  await row.getByRole("alert").waitFor();
  expect(await row.getByRole("alert").textContent()).toMatch(
    /Somebody was faster.*decline by user:ada.*approval\.already-resolved/,
  );
  read();
  await row.waitFor({ state: "detached" });
});
