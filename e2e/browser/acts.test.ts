/** What a person does on the page of a run and with the queue: each act by its own button, seen in what the server says. */
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { greeterConfig } from "./greeter.ts";
import { cancelAll, comesTo, HANGS, heardOf, heldModel, order, OUTSIDE, run } from "./orders.ts";
import { openStage, type Seat, type Stage } from "./stage.ts";

let stage: Stage;
let seat: Seat;
let page: Page;
beforeAll(async () => {
  stage = await openStage({ config: greeterConfig });
  seat = await stage.sit();
  ({ page } = seat);
});
afterAll(async () => {
  await seat[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});
afterEach(() => cancelAll(stage));

const act = (name: string | RegExp, within: Page | Locator = page): Locator =>
  within.getByRole("button", { name, exact: true });

async function logOf(id: string, type: string): Promise<readonly { author: string; body: unknown }[]> {
  const { data } = await stage.server.client.tasks.log(id, { limit: 100 });
  return data.filter(({ body }) => body.type === type);
}

test("a run is paused and resumed by its buttons", async () => {
  const { step, letGo } = heldModel();
  stage.plays("pausing", [step]);
  const { id } = await order(stage, "pausing");
  await page.goto(`${stage.server.url}/tasks/${id}`);
  await act(/^Pause/).click();
  await act(/^Resume/).waitFor();
  expect(await logOf(id, "task.paused")).toMatchObject([{ author: "user:owner" }]);
  await act(/^Resume/).click();
  await act(/^Pause/).waitFor();
  letGo();
});

test("Interrupt asks in place and ends the turn", async () => {
  const { step, letGo } = heldModel();
  stage.plays("stopping", [step]);
  const { id } = await order(stage, "stopping");
  await page.goto(`${stage.server.url}/tasks/${id}`);
  await act("Interrupt").click();
  await act("Interrupt the turn?").click();
  await act(/^Resume/).waitFor();
  const { threadId = "" } = await comesTo(stage, id, "paused");
  const [turn] = (await stage.server.client.listTurns(threadId)).data;
  expect(turn).toMatchObject({ status: "interrupted" });
  letGo();
});

test("a thread is taken over, its agent is told what the person says in a turn of their own, and it is given back", async () => {
  const { step, letGo } = heldModel();
  let isTaken = false;
  stage.plays("taking", [() => (isTaken ? Promise.resolve({ text: "As you say." }) : step())]);
  const { id } = await order(stage, "taking");
  await page.goto(`${stage.server.url}/tasks/${id}`);
  await act("Take over").click();
  await act("Pause the task and take its thread?").click();
  await page.getByRole("status").filter({ hasText: "You have the thread, the task is paused" }).waitFor();
  expect(await comesTo(stage, id, "paused")).toMatchObject({ reason: "taken over by owner" });
  isTaken = true;
  const field = page.getByPlaceholder(/^Say something: it begins a turn of yours/);
  await field.fill("use the copy in vendor");
  await field.press("Control+Enter");
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  await expect
    .poll(async () => (await stage.server.client.listTurns(threadId)).data.map(({ by, status }) => [by, status]))
    .toEqual([
      ["user:owner", "completed"],
      ["system", "interrupted"],
    ]);
  // The harness's turn is not shown as the person's, nor the other way round.
  await page.locator(".turn", { hasText: "started by the harness" }).waitFor();
  await page.locator(".turn", { hasText: "started by the owner" }).waitFor();
  await act("Give back").click();
  await expect.poll(async () => (await logOf(id, "task.resumed")).map(({ author }) => author)).toEqual(["user:owner"]);
  letGo();
});

test("two comments on lines and a sentence go to the agent together, as one steering", async () => {
  const { step, letGo } = heldModel();
  stage.plays("lines", [
    { calls: [{ tool: "apply_patch", args: "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch" }] },
    step,
  ]);
  const { id } = await order(stage, "lines");
  await page.goto(`${stage.server.url}/tasks/${id}`);
  for (const [line, words] of [
    [1, "say which one"],
    [2, "spell it out"],
  ] as const) {
    await act(`Comment on line ${line}`).click();
    await page.getByLabel("Comment on this line").fill(words);
    await act("Keep for the next steering").click();
  }
  await page.locator(".steer", { hasText: "2 comments" }).waitFor();
  await page.getByLabel("Steer the agent").fill("then go on");
  await act("Send").click();
  await page.locator(".steer", { hasText: "2 comments" }).waitFor({ state: "detached" });
  letGo();
  const said = "> a.txt:1\nsay which one\n\n> a.txt:2\nspell it out\n\nthen go on";
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  await expect
    .poll(async () => {
      const { data } = await stage.server.client.listItems(threadId);
      return data.flatMap(({ item }) =>
        item.type === "userMessage" ? item.content.map((part) => (part.type === "text" ? part.text : "")) : [],
      );
    })
    .toContain(said);
});

test("a task whose turns are used up gets two more by one press on Now, one that failed another attempt", async () => {
  const { id } = await order(stage, "spent", { budget: { turns: 1 } });
  await comesTo(stage, id, "paused");
  await page.goto(`${stage.server.url}/now`);
  const row = page.locator("li.ask", { hasText: "spent" });
  await act("Give 2 turns more", row).click();
  await expect
    .poll(async () => (await logOf(id, "task.resumed"))[0])
    .toMatchObject({ author: "user:owner", body: { budget: { turns: 2 } } });
  const failing = await order(stage, "failing", { budget: { turns: 1, on_reached: "fail" } });
  await comesTo(stage, failing.id, "failed");
  await act("Try again", page.locator("li.ask", { hasText: "failing" })).click();
  await expect.poll(async () => (await stage.server.client.tasks.read(failing.id)).attempt).toBe(2);
});

test("a command that hangs is relieved each way", async () => {
  for (const [name, action] of [
    ["Kill the child", "kill-child"],
    ["End its input", "eof"],
    ["Interrupt the turn", "interrupt"],
  ] as const) {
    const mark = `hangs-${action}`;
    stage.plays(mark, [{ calls: [HANGS] }, { text: "It is done." }]);
    const { id } = await order(stage, mark, { stall: { after: "1s" }, budget: { turns: 1 } });
    await page.goto(`${stage.server.url}/tasks/${id}`);
    const card = page.locator(".stall");
    await card.getByText(/Hangs, for/).waitFor();
    expect(await card.innerText()).toMatch(/cat, pid \d+, waits for input on stdin/);
    await act(name, card).click();
    await card.getByText(/Hung for/).waitFor();
    expect(await card.innerText()).toMatch(/by the owner/);
    const acts = await logOf(id, "task.stall-acted");
    expect(acts[0]).toMatchObject({ author: "user:owner", body: { action } });
  }
});

test("a command that hangs is tried again from the beginning, from Now", async () => {
  stage.plays("hangs-retry", [{ calls: [HANGS] }, { text: "It is done." }]);
  const { id } = await order(stage, "hangs-retry", { stall: { after: "1s" }, budget: { turns: 1 } });
  await page.goto(`${stage.server.url}/now`);
  const row = page.locator("li.ask", { hasText: "Hangs." });
  await act(/^More for/, row).click();
  await act("Try again from the beginning", row).click();
  await expect.poll(async () => (await stage.server.client.tasks.read(id)).attempt).toBe(2);
});

test("Allow for this thread asks once more where it leads out of the sandbox, and then holds for the same command", async () => {
  stage.plays("whole", [
    { calls: [run("touch whole.txt", OUTSIDE)] },
    { calls: [run("touch whole.txt", OUTSIDE)] },
    { text: "It is done." },
  ]);
  const { id } = await order(stage, "whole", { approval: "on-request" });
  await page.goto(`${stage.server.url}/tasks/${id}`);
  await act(/^Allow for this thread/).click();
  await act(/^Beyond the sandbox, every time: allow\?/).click();
  const { threadId = "" } = await comesTo(stage, id, "verified");
  const answers = await heardOf(stage, threadId, "approval.resolved");
  expect(answers).toMatchObject([{ author: "user:owner", body: { decision: "acceptForThread" } }]);
});

/** A thread without a task, whose agent may ask. */
async function begin(mark: string): Promise<string> {
  const { client } = stage.server;
  const { id } = await client.createThread({ workspace: stage.world.workspace });
  await client.startTurn(id, { input: `do [[${mark}]]`, approvalPolicy: "on-request" });
  return id;
}

test("a question with options is answered by one of them, or in one's own words", async () => {
  const questions = [
    {
      id: "which",
      header: "Pick",
      question: "Which database?",
      options: [option("the old one"), option("the new one")],
    },
    { id: "when", header: "When", question: "And when?", options: [option("now"), option("tonight")] },
  ];
  stage.plays("options", [{ calls: [{ tool: "request_user_input", args: { questions } }] }, { text: "done" }]);
  await page.goto(`${stage.server.url}/now`);
  const threadId = await begin("options");
  const row = page.locator("li.ask", { hasText: "Which database?" });
  await act("the new one", row).click();
  expect(await act("Answer", row).isDisabled()).toBe(true);
  await row.getByLabel("Answer: And when?").fill("on Sunday");
  await act("Answer", row).click();
  await row.getByText("answered by you").waitFor();
  expect(await heardOf(stage, threadId, "approval.resolved")).toMatchObject([
    { author: "user:owner", body: { decision: "accept", answers: { which: ["the new one"], when: ["on Sunday"] } } },
  ]);
});

function option(label: string): { label: string; description: string } {
  return { label, description: `take ${label}` };
}

test("the form of an MCP server is filled in, and the server hears what was given and nothing else", async () => {
  stage.plays("form", [{ calls: [{ tool: "mcp__greeter__greet", args: {} }] }, { text: "done" }]);
  const threadId = await begin("form");
  await page.goto(`${stage.server.url}/threads/${threadId}`);
  const dock = page.locator(".dock");
  await dock.locator("b", { hasText: "Whom to greet, and how?" }).waitFor();
  await act("Send", dock).click();
  // What is required is asked for by the browser.
  expect(await dock.getByLabel("Your name").evaluate((field: HTMLInputElement) => field.validity.valueMissing)).toBe(
    true,
  );
  await dock.getByLabel("Your name").fill("Ada");
  await dock.getByLabel("How often").fill("3");
  await dock.getByLabel("Language").selectOption("latin");
  await dock.getByLabel("Language").selectOption("");
  await dock.getByLabel("Loud").check();
  await act("Send", dock).click();
  await expect
    .poll(async () => JSON.stringify((await stage.server.client.listItems(threadId)).data))
    .toContain(JSON.stringify(`accept ${JSON.stringify({ loud: true, name: "Ada", times: 3 })}`).slice(1, -1));
});

test("a task with a typo shows the line and what was meant, and one that passes before any work is called vacuous", async () => {
  await page.goto(`${stage.server.url}/new`);
  await act("YAML").click();
  await page.getByLabel("The task as YAML").fill("name: typo\ngaol: fix it\nchecks:\n  - comand: npm test\n");
  const side = page.getByRole("complementary");
  await side.getByText(/^line 2: .*goal/).waitFor();
  await side.getByText(/^line 4: .*command/).waitFor();
  expect(await side.locator(".yaml .hint").count()).toBe(2);
  await act("Form").click();
  await page.getByLabel(/^Goal/).fill("Fix it. [[typo]]");
  await page.getByLabel("Folder", { exact: true }).fill(stage.world.workspace);
  await act("command").click();
  await page.getByLabel("command, 1", { exact: true }).fill("true");
  await act("file-exists").click();
  await page.getByLabel("file-exists, 2", { exact: true }).fill("nothing-here.txt");
  await side.getByText("0 mistakes").waitFor();
  await act("Run them", side).click();
  await page.locator(".cb li", { hasText: "vacuous" }).getByText("passes now").waitFor();
  await page.locator(".cb li", { hasText: "file-exists" }).getByText("fails now").waitFor();
  await side.locator(".tag", { hasText: "vacuous" }).waitFor();
});

test("Add is pressed twice, and once more from another tab with the same draft: it is one task", async () => {
  await page.goto(`${stage.server.url}/new`);
  await page.getByLabel(/^Goal/).fill("Add it once. [[once]]");
  await page.getByLabel("Name", { exact: true }).fill("once");
  await page.getByLabel("Folder", { exact: true }).fill(stage.world.workspace);
  const other = await seat.context.newPage();
  await other.goto(`${stage.server.url}/new`);
  await expect.poll(() => other.getByLabel("Name", { exact: true }).inputValue()).toBe("once");
  await act("Add to the queue").dblclick();
  await page.waitForURL(/\/tasks\/task_/);
  await act("Add to the queue", other).click();
  await other.waitForURL(/\/tasks\/task_/);
  expect(other.url()).toBe(page.url());
  expect((await stage.server.client.tasks.list({ search: "once" })).data).toHaveLength(1);
  await other.close();
});
