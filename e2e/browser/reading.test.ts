/** What is read on the page: whole outputs, words within a changed line, what an agent reports, names in place of ids. */
import { mkdir } from "node:fs/promises";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cancelAll, comesTo, folderOf, order, orderQuestion, run } from "./orders.ts";
import { openStage, type Seat, type Stage } from "./stage.ts";

let stage: Stage;
let seat: Seat;
let page: Page;
beforeAll(async () => {
  stage = await openStage();
  seat = await stage.sit();
  ({ page } = seat);
});
afterAll(async () => {
  await seat[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});
afterEach(() => cancelAll(stage));

const act = (name: string | RegExp, within: Page | Locator = page): Locator => within.getByRole("button", { name });
const open = (at: string) => page.goto(`${stage.server.url}${at}`);
const patch = (text: string) => ({ tool: "apply_patch", args: `*** Begin Patch\n${text}\n*** End Patch` });

test("the middle of an output that did not fit is shown on demand, and the chain of its thread is followed in the browser", async () => {
  stage.plays("long", [{ calls: [run("seq 1 60000")] }, { text: "It is done." }]);
  const { id } = await order(stage, "long", { checks: [] });
  await comesTo(stage, id, "claimed");
  await open(`/tasks/${id}`);
  await act(/seq 1 60000/).click();
  const detail = page.locator(".step-detail");
  await act("Show the whole output", detail).click();
  await detail.getByText("bytes 0 to 8,893").waitFor();
  await act("The next part", detail).click();
  // Just what was left out, from its first line.
  await detail.getByText("bytes 8,893 to 18,893").waitFor();
  expect((await detail.locator(".out").last().locator(".ln").first().textContent())?.trim()).toBe("2001");
  await act("Check the chain here").click();
  await page.getByText(/This browser followed the chain through \d+ events, and \d+ signed heads are in it/).waitFor();
});

test("a changed line shows the words that changed, and keys go through the files", async () => {
  stage.plays("words", [
    { calls: [patch("*** Add File: a.txt\n+the red sock\n+stays"), patch("*** Add File: b.txt\n+new")] },
    { calls: [patch("*** Update File: a.txt\n@@\n-the red sock\n+the blue sock\n stays")] },
    { text: "It is done." },
  ]);
  const { id } = await order(stage, "words", { checks: [] });
  const { threadId = "" } = await comesTo(stage, id, "claimed");
  const [turn] = (await stage.server.client.listTurns(threadId)).data;
  await open(`/threads/${threadId}?scope=turn:${turn?.id ?? ""}`);
  const first = page.locator(".file").first();
  await expect.poll(() => first.locator("mark").allTextContents()).toEqual(["red", "blue"]);
  await page.keyboard.press("]");
  expect(await first.getAttribute("aria-current")).toBe("true");
  await page.keyboard.press("]");
  const second = page.locator(".file").nth(1);
  expect(await second.getAttribute("aria-current")).toBe("true");
  await page.keyboard.press("v");
  expect(await second.getByLabel("Viewed").isChecked()).toBe(true);
  await page.keyboard.press("m");
  await page.getByLabel("Comment on this line").fill("why");
  await act("Keep for the next steering").click();
  await page.locator(".steer", { hasText: "1 comment" }).waitFor();
});

test("what an agent reports is said in its words, checks that failed are named, and a task waits for another by its name", async () => {
  const report = {
    tool: "task_report",
    args: { status: "progress", summary: "the parser is written", steps_done: [1] },
  };
  stage.plays("telling", [{ calls: [report] }, { text: "It is done." }]);
  const { id } = await order(stage, "telling", { max_nudges: 0, steps: ["write the parser"] });
  await comesTo(stage, id, "paused");
  await open(`/tasks/${id}`);
  await page.locator(".st", { hasText: "Reports: step 1 done. the parser is written" }).click();
  await page.locator(".step-detail .says", { hasText: "the parser is written" }).waitFor();
  await page.locator(".verdict", { hasText: "0 of 1 check passed; not passed: “file-exists telling.txt”" }).waitFor();
  const { id: later } = await order(stage, "later", { depends_on: [id] });
  await comesTo(stage, later, "waiting");
  await open(`/tasks/${later}`);
  await page.locator(".state", { hasText: "waits for telling, which is paused" }).waitFor();
});

test("a turn of one's own begins with an image, as a plan, in an envelope that was chosen", async () => {
  const { client } = stage.server;
  await mkdir(folderOf(stage, "composed"), { recursive: true });
  const { id } = await client.createThread({ workspace: folderOf(stage, "composed") });
  stage.plays("composed", [{ text: "I see." }]);
  await open(`/threads/${id}`);
  await page.getByText("Images, model, sandbox").click();
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await page.getByLabel("Images").setInputFiles({ name: "shot.png", mimeType: "image/png", buffer: png });
  await page.getByText("shot.png").waitFor();
  await page.getByLabel("Envelope").selectOption("explore");
  await page.getByLabel("Who is asked").selectOption("on-request");
  const field = page.getByPlaceholder(/^Say something/);
  await field.fill("look at this [[composed]]");
  await field.press("Control+Enter");
  await expect.poll(async () => (await client.listTurns(id)).data[0]?.status).toBe("completed");
  const [turn] = (await client.listTurns(id)).data;
  expect(turn?.input.map(({ type }) => type)).toEqual(["text", "image"]);
  expect(turn?.settings).toMatchObject({ approvalPolicy: "on-request", envelope: "explore" });
});

test("a question that comes below what is in sight is told of, and nothing moves for it", async () => {
  await comesTo(stage, (await orderQuestion(stage, "above")).id, "waiting");
  await using narrow = await stage.sit({ viewport: { width: 900, height: 240 } });
  await narrow.page.locator("li.ask", { hasText: "touch above.txt" }).waitFor();
  await orderQuestion(stage, "below");
  const pill = narrow.page.getByRole("button", { name: /\d new/ });
  await pill.waitFor();
  await pill.click();
  await narrow.page.locator("li.ask.sel", { hasText: "touch below.txt" }).waitFor();
  await pill.waitFor({ state: "detached" });
});
