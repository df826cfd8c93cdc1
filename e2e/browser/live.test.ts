/** A page that stays open while what it listens to goes away: nothing is lost, nothing comes twice, nothing is reloaded. */
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cancelAll, orderQuestion } from "./orders.ts";
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

test("without network the page says how old it is and sends nothing; with it again it catches up", async () => {
  await using seat = await stage.sit();
  const { page, context } = seat;
  await page.locator(".foot .live.live").waitFor();
  await mark(page);
  await context.setOffline(true);
  // The streams are opened again by this event, as after a sleep, and find no network.
  await page.evaluate(() => dispatchEvent(new Event("online")));
  const stale = page.getByRole("status").filter({ hasText: /^as of .*reconnecting/ });
  await stale.waitFor();
  await expect.poll(() => page.title()).toMatch(/no connection/);
  await orderQuestion(stage, "meanwhile");
  await expect.poll(async () => (await stage.server.client.listApprovals()).data.length).toBeGreaterThan(0);
  await context.setOffline(false);
  const row = page.locator("li.ask", { hasText: "touch meanwhile.txt" });
  await row.waitFor();
  await stale.waitFor({ state: "detached" });
  expect([await row.count(), await isSame(page)]).toEqual([1, true]);
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
