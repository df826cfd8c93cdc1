/** A page that stays open while what it listens to goes away: nothing is lost, nothing comes twice, nothing is reloaded. */
import type { Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cancelAll, comesTo, heldModel, order, orderQuestion, OUTSIDE, run } from "./orders.ts";
import { settled } from "./probes.ts";
import { openQuietLine, type QuietLine } from "./quiet-line.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage[Symbol.asyncDispose]());
afterEach(() => cancelAll(stage));

/** Gone with the document: a page that has it was not loaded again. */
const mark = (page: Page): Promise<void> => page.evaluate(() => void ((globalThis as { isSame?: true }).isSame = true));
const isSame = (page: Page): Promise<boolean> => page.evaluate(() => (globalThis as { isSame?: true }).isSame === true);

async function asksIn(mark: string): Promise<{ readonly id: string; readonly threadId: string }> {
  const { id, threadId = "" } = await comesTo(stage, (await orderQuestion(stage, mark)).id, "waiting");
  return { id, threadId };
}

async function questionOf(threadId: string): Promise<string> {
  return (await stage.server.client.listApprovals(threadId)).data[0]?.id ?? "";
}

/** What the page asks for while its clock goes on by so much and the server beats. */
async function askedWithin(ms: number, page: Page, line: QuietLine): Promise<readonly string[]> {
  const asked: string[] = [];
  const hear = (request: Request): void => void asked.push(request.url());
  page.on("request", hear);
  for (let left = ms; left > 0; left -= 10_000) {
    line.beat();
    await page.clock.runFor(Math.min(left, 10_000));
  }
  page.off("request", hear);
  return asked;
}

/** As if another tab were in front of it. */
async function hide(tab: Page, isHidden = true): Promise<void> {
  const look = (is: boolean): void => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => is });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  await tab.addInitScript(look, isHidden);
  if (tab.url() !== "about:blank") await tab.evaluate(look, isHidden);
}

const show = (tab: Page): Promise<void> => hide(tab, false);

test("a server that is killed and started again is connected again to the same page, with no gap and nothing twice", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  await orderQuestion(stage, "before");
  const rows = page.locator("li.ask", { hasText: "outside the sandbox" });
  await rows.first().waitFor();
  await mark(page);
  await stage.restart();
  await orderQuestion(stage, "after");
  await page.locator("li.ask", { hasText: "touch after.txt" }).waitFor();
  expect(await page.locator("li.ask", { hasText: "touch after.txt" }).count()).toBe(1);
  const { data } = await stage.server.client.listApprovals();
  await expect.poll(() => rows.count()).toBe(data.length);
  await page.locator(".foot .live.live").waitFor();
  expect(await isSame(page)).toBe(true);
});

test("a run that is looked at while its server is killed and started again shows each step once, and none is missing", async () => {
  stage.plays("steps", [
    { calls: [run("echo one"), run("echo two")] },
    { calls: [run("touch steps.txt", OUTSIDE)] },
    { calls: [run("echo three"), run("echo four")] },
    { text: "It is done." },
  ]);
  const { id } = await order(stage, "steps", { approval: "on-request" });
  await using seat = await stage.sit({ at: `/tasks/${id}` });
  const { page } = seat;
  const dock = page.locator(".dock");
  await dock.waitFor();
  await mark(page);
  await stage.restart();
  await page.locator(".foot .live.live").waitFor();
  await dock
    .getByRole("button", { name: /^Allow once/ })
    .and(page.locator(":enabled"))
    .click();
  const { threadId = "" } = await comesTo(stage, id, "verified");
  await page.locator(".c-verdict", { hasText: "Verified" }).waitFor();
  const { data } = await stage.server.client.listItems(threadId);
  const commands = data.flatMap(({ item }) => (item.type === "commandExecution" ? [item.command] : []));
  expect(commands.toSorted()).toEqual(["echo four", "echo one", "echo three", "echo two", "touch steps.txt"]);
  const steps = page.locator(".tl .st", { has: page.locator(".ex") });
  await expect
    .poll(async () => (await steps.locator("code").allTextContents()).toSorted())
    .toEqual(commands.toSorted());
  expect(await isSame(page)).toBe(true);
});

test("a command that ran when its server was killed is unknown, and nobody pretends to know what it did", async () => {
  stage.plays("dies", [{ calls: [run("sleep 60", { yield_time_ms: 60_000 })] }, { text: "It is done." }]);
  const { id } = await order(stage, "dies", { checks: [] });
  const commands = async () => {
    const { threadId } = await stage.server.client.tasks.read(id);
    if (threadId === undefined) return [];
    const { data } = await stage.server.client.listItems(threadId);
    return data.flatMap(({ item }) => (item.type === "commandExecution" ? [item.status] : []));
  };
  await expect.poll(commands).toEqual(["inProgress"]);
  await stage.restart();
  await expect.poll(commands).toEqual(["unknown"]);
  await using seat = await stage.sit({ at: `/tasks/${id}` });
  const step = seat.page.locator(".st", { hasText: "sleep 60" });
  expect(await step.innerText()).toMatch(/Heddle died while it ran; nobody can say what it did[\s\S]*unknown/);
  expect(await step.locator(".i-ask").count()).toBe(1);
});

test("without network the page says how old it is and sends nothing; with it again it catches up", async () => {
  await using seat = await stage.sit({ clock: Date.now() });
  const { page, context } = seat;
  const held = heldModel();
  stage.plays("runs", [held.step]);
  const { id } = await order(stage, "runs", { budget: { turns: 1 } });
  await comesTo(stage, id, "running");
  await page.locator(".now-side .spin").waitFor();
  await mark(page);
  await context.setOffline(true);
  // The streams are opened again by this event, as after a sleep, and find no network.
  await page.evaluate(() => dispatchEvent(new Event("online")));
  const stale = page.getByRole("status").filter({ hasText: /^as of .*reconnecting/ });
  await stale.waitFor();
  await expect.poll(() => page.title()).toMatch(/no connection/);
  const ages = page.locator(".now-side time");
  await expect.poll(() => ages.first().textContent()).toMatch(/^≥ /);
  const before = await ages.allTextContents();
  await page.clock.fastForward(30_000);
  expect(await ages.allTextContents()).toEqual(before);
  expect(await page.evaluate(() => document.getAnimations().length)).toBe(0);
  await orderQuestion(stage, "meanwhile");
  await expect.poll(async () => (await stage.server.client.listApprovals()).data.length).toBeGreaterThan(0);
  await context.setOffline(false);
  const row = page.locator("li.ask", { hasText: "touch meanwhile.txt" });
  await row.waitFor();
  await stale.waitFor({ state: "detached" });
  expect([await row.count(), await isSame(page)]).toEqual([1, true]);
  await expect.poll(() => ages.first().textContent()).not.toMatch(/^≥ /);
  held.letGo();
});

test("while there is no connection a key sends nothing and says so, and nothing is sent later", async () => {
  await using seat = await stage.sit();
  const { page, context } = seat;
  const { id } = await orderQuestion(stage, "unsent");
  const row = page.locator("li.ask", { hasText: "touch unsent.txt" });
  const allow = row.getByRole("button", { name: /^Allow once/ });
  await allow.and(page.locator(":enabled")).waitFor();
  await context.setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await page
    .getByRole("status")
    .filter({ hasText: /^as of / })
    .waitFor();
  expect([await allow.isDisabled(), await allow.getAttribute("title")]).toEqual([
    true,
    expect.stringMatching(/^Not sent/),
  ]);
  await page.keyboard.press("a");
  await row.getByRole("alert").filter({ hasText: "Not sent" }).waitFor();
  await context.setOffline(false);
  await allow.and(page.locator(":enabled")).waitFor();
  const { data } = await stage.server.client.listApprovals((await stage.server.client.tasks.read(id)).threadId);
  expect(data).toHaveLength(1);
});

test("a stream that falls silent without being closed is opened again within 45 seconds, on Now and on a run", async () => {
  await using line = await openQuietLine(stage.server.url);
  await using seat = await stage.sit({ url: line.url, clock: Date.now() });
  const { page } = seat;
  await page.locator(".foot .live.live").waitFor();
  line.silence();
  const { id, threadId } = await asksIn("silent");
  await page.clock.fastForward(30_000);
  await page
    .getByRole("status")
    .filter({ hasText: /^as of .*reconnecting/ })
    .waitFor();
  await page.clock.fastForward(15_000);
  await page.locator("li.ask", { hasText: "touch silent.txt" }).waitFor();
  await page.goto(`${line.url}/tasks/${id}`);
  const allow = page.locator(".dock").getByRole("button", { name: /^Allow once/ });
  await allow.waitFor();
  line.silence();
  await stage.server.client.answerApproval(threadId, await questionOf(threadId), "accept");
  await comesTo(stage, id, "verified");
  await page.clock.fastForward(45_000);
  await page.locator(".c-verdict", { hasText: "Verified" }).waitFor();
  await page.locator(".verdict", { hasText: "Checks passed" }).waitFor();
});

test("nobody asks twice: within a minute of rest nothing is asked for, on Now and on a run", async () => {
  await using line = await openQuietLine(stage.server.url);
  await using seat = await stage.sit({ url: line.url, clock: Date.now() });
  const { page } = seat;
  const { id } = await asksIn("rests");
  for (const at of ["/now", `/tasks/${id}`, "/tasks", "/threads", "/usage"]) {
    await page.goto(`${line.url}${at}`);
    await settled(page);
    // What the first look asks for may still be on its way.
    await expect.poll(() => askedWithin(5_000, page, line)).toEqual([]);
    expect([at, await askedWithin(60_000, page, line)]).toEqual([at, []]);
  }
});

test.each([
  ["an hour ahead", 3_600_000],
  ["an hour behind", -3_600_000],
])("in a browser whose clock is %s ages are right, and so is the time of the last sign", async (_how, offMs) => {
  await using seat = await stage.sit({ clock: Date.now() + offMs });
  const { page, context } = seat;
  const { id } = await asksIn(offMs > 0 ? "ahead" : "behind");
  const row = page.locator("li.ask", { hasText: ".txt" });
  await row.waitFor();
  expect(await row.locator("time").innerText()).toMatch(/^\d{1,2} s ago$/);
  await page.goto(`${stage.server.url}/tasks/${id}`);
  await page.locator(".dock time").waitFor();
  expect(await page.locator(".run time").allInnerTexts()).not.toContainEqual(expect.stringMatching(/\d (?:h|min)\b/));
  await context.setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  const stale = page.getByRole("status").filter({ hasText: /^as of / });
  await stale.waitFor();
  const [, hours = "", minutes = ""] = /as of (\d\d):(\d\d)/.exec(await stale.innerText()) ?? [];
  const apartMs = Math.abs(
    Number(hours) * 60 + Number(minutes) - new Date().getUTCHours() * 60 - new Date().getUTCMinutes(),
  );
  expect(Math.min(apartMs, 24 * 60 - apartMs)).toBeLessThanOrEqual(1);
});

test("two tabs that are looked at and six that are not: each is live when it is shown", async () => {
  await using seat = await stage.sit();
  const { context, page } = seat;
  const tabs = [page];
  for (let number = 1; number < 8; number += 1) {
    const tab = await context.newPage();
    if (number > 1) await hide(tab);
    await tab.goto(`${stage.server.url}/now`);
    await tab.locator("#main h1").waitFor();
    tabs.push(tab);
  }
  await asksIn("many");
  for (const [number, tab] of tabs.entries()) {
    if (number > 1) {
      expect(await tab.title()).toMatch(/\(paused\)/);
      await hide(tabs[number - 1] ?? page);
      await show(tab);
    }
    await tab.locator("li.ask", { hasText: "touch many.txt" }).waitFor();
    await tab.locator(".foot .live.live").waitFor();
    await expect.poll(() => tab.title()).not.toMatch(/\(paused\)/);
  }
});

test("a page whose place in the record the server does not know any more begins again from what it says now", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  await page.locator(".foot .live.live").waitFor();
  let refused = 0;
  await page.route("**/api/events?*", async (route) => {
    refused += 1;
    const error = { code: "cursor.expired", message: "the events after this are gone" };
    if (refused > 1) return await route.continue();
    return await route.fulfill({ status: 410, contentType: "application/json", body: JSON.stringify({ error }) });
  });
  await mark(page);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await expect.poll(() => refused).toBeGreaterThan(1);
  await orderQuestion(stage, "expired");
  await page.locator("li.ask", { hasText: "touch expired.txt" }).waitFor();
  expect(await isSame(page)).toBe(true);
});

test("two tabs show the same question, and its answer in one takes it out of the other", async () => {
  await using seat = await stage.sit();
  const { page, context } = seat;
  const other = await context.newPage();
  await other.goto(`${stage.server.url}/now`);
  await orderQuestion(stage, "tabs");
  const rows = [page, other].map((one) => one.locator("li.ask", { hasText: "touch tabs.txt" }));
  for (const row of rows) await row.waitFor();
  await rows[0]?.getByRole("button", { name: /^Allow once/ }).click();
  for (const row of rows) await row.waitFor({ state: "detached" });
});
