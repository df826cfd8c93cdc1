/** What an agent writes is shown as what it is: no element, no script, no request comes of it, and nothing in it hides. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cancelAll, order, orderQuestion, run } from "./orders.ts";
import { settled } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage[Symbol.asyncDispose]());
afterEach(() => cancelAll(stage));

const MARKUP = [
  '<img src="http://127.0.0.1:9/x" onerror="document.title=1">',
  "<svg onload=alert(1)><script>alert(1)</script></svg>",
  "[click](javascript:alert(1)) ![x](http://127.0.0.1:9/y)",
].join(" ");

test("markup in names, goals, checks, commands, reasons and messages makes no element and no request", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const outside = { sandbox_permissions: "require_escalated", justification: MARKUP };
  stage.plays("markup", [{ text: MARKUP, calls: [run(`echo '${MARKUP}'`, outside)] }]);
  const { id, threadId = "" } = await order(stage, "markup", {
    name: `markup ${MARKUP}`,
    approval: "on-request",
    checks: [{ "file-exists": "<b>x</b>.txt" }],
    labels: ["<i>"],
  });
  const row = page.locator("li.ask", { hasText: "echo" });
  await row.waitFor();
  expect(await row.innerText()).toContain('onerror="document.title=1"');
  for (const at of ["/now", "/tasks", `/tasks/${id}`, "/threads", `/threads/${threadId}`, "/evidence", "/usage"]) {
    await page.goto(`${stage.server.url}${at}`);
    await settled(page);
    const made = await page.evaluate(() => [
      document.querySelectorAll("#root img, #root script, #root iframe, #root [onload], #root [onerror]").length,
      document.querySelectorAll("#root a[href^='javascript:']").length,
    ]);
    expect([at, ...made]).toEqual([at, 0, 0]);
  }
  expect(requests.filter((url) => !url.startsWith(stage.server.url) && !url.startsWith("data:"))).toEqual([]);
});

test.each([
  ["direction", "touch a\u202etxt.exe", "\u202e"],
  ["nothing", "touch a\u200bb", "\u200b"],
  ["escape", "touch a\u001b[2K\u001b[1Gls", "\u001b"],
  ["return", "rm -rf x\rls", "\r"],
  ["tags", "touch a\u{e0041}b", "\u{e0041}"],
])("a command with %s in it shows it, and the letter itself is not on the page", async (name, command, letter) => {
  await using seat = await stage.sit();
  const { page } = seat;
  await orderQuestion(stage, `sign-${name}`, command);
  const exact = page.locator("li.ask pre.q");
  await exact.waitFor();
  expect(await page.evaluate(() => document.body.textContent)).not.toContain(letter);
  const told = (await exact.textContent()) ?? "";
  expect(told.length).toBeGreaterThan(command.length);
});

test("letters that only look like those of a command are underlined and named by their code points", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  await orderQuestion(stage, "lookalike", "c\u0430t notes.txt");
  const row = page.locator("li.ask", { hasText: "notes.txt" });
  await row.waitFor();
  expect(await row.innerText()).toContain("U+0430");
  expect(await row.locator("pre.q .stranger").allTextContents()).toEqual(["\u0430"]);
});

test("a question that is longer than its box cannot be allowed before it was scrolled to its end", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  await orderQuestion(stage, "long", `echo ${"padding ".repeat(2000)}; rm -rf build`);
  const row = page.locator("li.ask", { hasText: "padding" });
  await row.getByText(/scroll to its end/).waitFor();
  const allow = row.getByRole("button", { name: /^Allow once/ });
  // A question that came later can be answered already, so this one is not off for being new.
  await orderQuestion(stage, "short");
  const later = page.locator("li.ask", { hasText: "touch short.txt" });
  await later
    .getByRole("button", { name: /^Allow once/ })
    .and(page.locator(":enabled"))
    .waitFor();
  expect(await allow.isDisabled()).toBe(true);
  await row.locator("pre.q").evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await allow.and(page.locator(":enabled")).waitFor();
  expect(await row.locator("pre.q").textContent()).toMatch(/; rm -rf build$/);
});
