/** Without a pointer: the morning, the phone and the review, and where the focus is when something has gone. */
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { addsFile, cancelAll, comesTo, heardOf, order, orderQuestion, run } from "./orders.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ config: () => Promise.resolve("[tasks]\nconcurrency = 8\n") });
});
afterAll(() => stage[Symbol.asyncDispose]());
afterEach(() => cancelAll(stage));

const MOST_TABS = 60;

/** What has the focus, as a screen reader says it. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement: at } = document;
    if (at === null || at === document.body) return "nothing";
    return (at.getAttribute("aria-label") ?? at.textContent).trim();
  });
}

/** Presses Tab until that has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let press = 0; press < MOST_TABS; press += 1) {
    if (name.test(await focused(page))) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${name.source}`);
}

async function asks(...marks: readonly string[]): Promise<readonly string[]> {
  const threads: string[] = [];
  for (const mark of marks)
    threads.push((await comesTo(stage, (await orderQuestion(stage, mark)).id, "waiting")).threadId ?? "");
  return threads;
}

test("the morning: one matter is denied with words, one is allowed, one is opened, and one is put off", async () => {
  const threads = await asks("one", "two", "three", "four");
  await using seat = await stage.sit();
  const { page } = seat;
  const rows = page.locator("li.ask");
  const selected = page.locator("li.ask.sel");
  await expect.poll(() => rows.count()).toBe(4);
  await page.keyboard.press("End");
  await expect.poll(() => selected.innerText()).toMatch(/touch four\.txt/);
  await page.keyboard.press("Home");
  await page.keyboard.press("j");
  await expect.poll(() => selected.innerText()).toMatch(/touch two\.txt/);
  const allow = selected.getByRole("button", { name: /^Allow once/ }).and(page.locator(":enabled"));
  await allow.waitFor();
  await page.keyboard.press("d");
  await expect.poll(() => focused(page)).toMatch(/^Why/);
  await page.keyboard.type("use the copy in vendor");
  await page.keyboard.press("Enter");
  await rows.filter({ hasText: "denied by you" }).waitFor();
  // The next takes its place.
  await expect.poll(() => selected.innerText()).toMatch(/touch three\.txt/);
  await allow.waitFor();
  await page.keyboard.press("a");
  await rows.filter({ hasText: "allowed by you" }).waitFor();
  expect(await heardOf(stage, threads[1] ?? "", "approval.resolved")).toMatchObject([
    { body: { decision: "decline", reason: "use the copy in vendor" } },
  ]);
  await page.keyboard.press("Home");
  await expect.poll(() => selected.innerText()).toMatch(/touch one\.txt/);
  await page.keyboard.press("e");
  await rows.filter({ hasText: "touch one.txt" }).waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/tasks\/task_/);
  await expect.poll(() => page.title()).toMatch(/^Waits for you: four/);
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.waitForURL(/\/now/);
});

test("the phone: from the link of a notification the whole command is seen and allowed by two presses", async () => {
  const [threadId = ""] = await asks("notified");
  const id = (await stage.server.client.listApprovals(threadId)).data[0]?.id ?? "";
  await using seat = await stage.sit({ viewport: { width: 390, height: 844 }, hasTouch: true });
  const { page } = seat;
  await page.goto(`${stage.server.url}/now?sel=${id}`);
  const row = page.locator("li.ask.sel");
  expect(await row.locator("pre.q").innerText()).toBe("touch notified.txt");
  await row
    .getByRole("button", { name: /^Allow once/ })
    .and(page.locator(":enabled"))
    .waitFor();
  await tabTo(page, /^Allow once/);
  await page.keyboard.press("Enter");
  await page.locator("li.ask", { hasText: "notified.txt" }).getByText("allowed by you").waitFor();
});

test("the review: filtered, opened, read file by file with a comment, verified, and its menu looked at", async () => {
  stage.plays("review", [
    { calls: [addsFile("review.txt"), addsFile("second.txt", "two")] },
    { calls: [run("exit 3")] },
    { text: "It is done." },
  ]);
  const { id } = await comesTo(stage, (await order(stage, "review")).id, "verified");
  await using seat = await stage.sit({ at: "/tasks" });
  const { page } = seat;
  await page.keyboard.press("/");
  await page.keyboard.type("review");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".tk tbody tr:not(.grp)").count()).toBe(1);
  await page.keyboard.press("j");
  await page.locator("tr.sel").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`${stage.server.url}/tasks/${id}`);
  await expect.poll(() => page.title()).toMatch(/^Verified: review/);
  await page.locator(".file").nth(1).waitFor();
  await page.keyboard.press("]");
  await page.keyboard.press("m");
  await expect.poll(() => focused(page)).toBe("Comment on this line");
  await page.keyboard.type("which one?");
  await page.keyboard.press("Control+Enter");
  await page.locator(".note-in", { hasText: "which one?" }).waitFor();
  await page.keyboard.press("v");
  await expect.poll(() => page.locator(".file").first().getByLabel("Viewed").isChecked()).toBe(true);
  // The next problem is the command that failed.
  await page.keyboard.press("n");
  await page.locator(".st.sel", { hasText: "exit 3" }).first().waitFor();
  await page.keyboard.press("V");
  await page.locator(".c-chain", { hasText: /whole up to event/ }).waitFor();
  await tabTo(page, /^More$/);
  await page.keyboard.press("Enter");
  await page.locator(".menu-list").waitFor();
  await page.keyboard.press("Escape");
  expect(await focused(page)).toBe("More");
});

test("the focus is never lost: not with a row that goes, nor with words that are taken back, nor behind what was opened", async () => {
  await asks("gone", "stays");
  await using seat = await stage.sit();
  const { page } = seat;
  const row = page.locator("li.ask", { hasText: "touch gone.txt" });
  const allow = row.getByRole("button", { name: /^Allow once/ });
  await allow.and(page.locator(":enabled")).waitFor();
  await tabTo(page, /^Deny…/);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  expect(await focused(page)).toMatch(/^Deny…/);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => focused(page)).toMatch(/^Deny…/);
  await page.keyboard.press("Shift+Tab");
  expect(await focused(page)).toMatch(/^Allow once/);
  await page.keyboard.press("Enter");
  await row.waitFor({ state: "detached" });
  await expect.poll(() => focused(page)).toMatch(/touch stays\.txt/);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineWidth);
  expect(outline).toBe("2px");
});

test("with single keys turned off nothing is done by one, and everything by Tab and Enter", async () => {
  await asks("off");
  await using seat = await stage.sit();
  const { page } = seat;
  await page.evaluate(() => localStorage.setItem("heddle.preferences", JSON.stringify({ areKeysOff: true })));
  await page.reload();
  const row = page.locator("li.ask", { hasText: "touch off.txt" });
  const allow = row.getByRole("button", { name: /^Allow once/ });
  await allow.and(page.locator(":enabled")).waitFor();
  await page.keyboard.press("a");
  await page.keyboard.press("d");
  expect([await row.getByLabel(/^Why/).count(), await allow.isEnabled()]).toEqual([0, true]);
  await tabTo(page, /^Allow once/);
  await page.keyboard.press("Enter");
  await row.getByText("allowed by you").waitFor();
});
