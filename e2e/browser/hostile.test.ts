/** What an agent writes is shown as what it is: no element, no script, no request comes of it, and nothing in it hides. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Locator, Page } from "playwright-core";
import { greeterConfig } from "./greeter.ts";
import { cancelAll, comesTo, order, orderQuestion, OUTSIDE, run } from "./orders.ts";
import { visit } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ config: greeterConfig });
});
afterAll(() => stage[Symbol.asyncDispose]());
afterEach(() => cancelAll(stage));

const MARKUP = [
  '<img src="http://127.0.0.1:9/x" onerror="document.title=1">',
  "<svg onload=alert(1)><script>alert(1)</script></svg>",
  "[click](javascript:alert(1)) ![x](http://127.0.0.1:9/y)",
].join(" ");

const REPORT = { status: "done", summary: MARKUP };
const patch = (file: string, text: string): string => `*** Begin Patch\n*** Add File: ${file}\n+${text}\n*** End Patch`;
const IMAGE = '<img src="x" onerror="document.title=1">';
const MARKDOWN = [
  MARKUP,
  "[host](https://user@example.org.evil.example/?q=1) <javascript:alert(1)> <a href='javascript:alert(1)'>a</a>",
  "[data](data:text/html,<script>alert(1)</script>) [v](vbscript:x) [rel](//evil.example) [file](file:///etc/passwd)",
  "![logo](http://127.0.0.1:9/z.svg) <svg><use href='http://127.0.0.1:9/u.svg'/></svg> <style>*{color:green}</style>",
].join("\n\n");

test("markup in whatever an agent says, names or writes makes no element and no request, on any page", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const outside = { ...OUTSIDE, justification: MARKUP };
  stage.plays("markup", [
    { calls: [{ tool: "apply_patch", args: patch(`${IMAGE}.md`, MARKUP) }] },
    { reasoning: MARKUP, text: MARKDOWN, calls: [run(`printf '%s' '${IMAGE}' >&2; exit 3`)] },
    {
      calls: [
        { tool: "apply_patch", args: patch("nowhere/\u0000", MARKUP) },
        { tool: "task_report", args: REPORT },
      ],
    },
    { text: MARKUP, calls: [run(`echo '${MARKUP}'`, outside)] },
  ]);
  const { id, threadId = "" } = await order(stage, "markup", {
    name: `markup ${MARKUP}`,
    approval: "on-request",
    checks: [{ name: `check ${IMAGE}`, "file-exists": "<b>x</b>.txt" }],
    labels: ["<i>"],
    protect: ["<u>*</u>"],
    model: `gpt-5.5${IMAGE}`,
  });
  const row = page.locator("li.ask", { hasText: "echo" });
  await row.waitFor();
  expect(await row.innerText()).toContain('onerror="document.title=1"');
  const { data } = await stage.server.client.listItems((await comesTo(stage, id, "waiting")).threadId ?? threadId);
  const items = data.map(({ item }) => `/tasks/${id}?item=${item.id}&tab=step`);
  const entries = (await stage.server.client.evidence.query({ limit: 1 })).data.map(
    (entry) => `/evidence?at=${entry.id}`,
  );
  const places = ["/now", "/tasks", "/tasks?view=board", "/threads", "/evidence", "/usage", "/settings", "/new"];
  const run1 = ["", "?tab=prompt", `?item=${data.at(-1)?.item.id ?? ""}&tab=raw`].map(
    (query) => `/tasks/${id}${query}`,
  );
  for (const at of [...places, ...entries, ...run1, ...items]) {
    await visit(page, at);
    expect([at, await madeOfMarkup(page)]).toEqual([at, []]);
  }
  await page.keyboard.press("Control+k");
  await page.getByLabel("Search or do").last().fill("markup");
  await page.getByRole("option").first().waitFor();
  expect(await madeOfMarkup(page)).toEqual([]);
  expect(requests.filter((url) => !url.startsWith(stage.server.url) && !url.startsWith("data:"))).toEqual([]);
  expect(await page.title()).not.toBe("1");
});

test("Markdown of an agent links only to http and https, with the host it leads to beside it", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  stage.plays("links", [{ text: `${MARKDOWN}\n\n[good](http://example.org/a) **bold** \u202eevil` }]);
  const { id } = await order(stage, "links", { checks: [] });
  const { threadId = "" } = await comesTo(stage, id, "claimed");
  const { data } = await stage.server.client.listItems(threadId);
  const said = data.find(({ item }) => item.type === "agentMessage")?.item.id ?? "";
  await page.goto(`${stage.server.url}/tasks/${id}?item=${said}&tab=step`);
  await page.locator(".md b", { hasText: "bold" }).waitFor();
  const links = await page
    .locator(".md a")
    .evaluateAll((all: HTMLAnchorElement[]) =>
      all.map(({ href, rel, target, textContent }) => [href, rel, target, textContent]),
    );
  expect(links).toEqual([
    ["https://user@example.org.evil.example/?q=1", "noopener noreferrer", "_blank", "host (example.org.evil.example)"],
    ["http://example.org/a", "noopener noreferrer", "_blank", "good (example.org)"],
  ]);
  expect(await page.locator(".md").textContent()).not.toContain("\u202e");
});

/** What only markup can have made: elements the page has none of, and attributes that are scripts. */
function madeOfMarkup(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const made = "img, script, iframe, object, embed, style, use, [onload], [onerror], [style*='url'], u";
    const links = "a[href^='javascript:' i], a[href^='data:' i], a[href^='vbscript:' i], a[href^='file:' i]";
    return [...document.querySelectorAll(`#root :is(${made}, ${links})`)].map(({ outerHTML }) =>
      outerHTML.slice(0, 200),
    );
  });
}

const BLANKS = " ".repeat(200);
/** By what hides in it: the command, the letter that must not be on the page, how it is written there. */
const TRICKS = [
  ["direction", "touch a\u202etxt.exe", "\u202e", "\\u{202e}"],
  ["nothing", "touch a\u200bb", "\u200b", "\\u{200b}"],
  ["escape", "touch a\u001b[2K\u001b[1Gls", "\u001b", "\\x1b[2K\\x1b[1G"],
  ["return", "rm -rf x\rls", "\r", "rm -rf x\\x0dls"],
  ["line", "ls\n\nrm -rf x", undefined, "ls\\n\\nrm -rf x"],
  ["tags", "touch a\u{e0041}b", "\u{e0041}", "\\u{e0041}"],
  ["blanks", `ls${BLANKS}; rm -rf x`, BLANKS, "ls [200 blanks] ; rm -rf x"],
] as const;

test.each(TRICKS)("a command with %s in it shows it, on Now and on its run", async (name, command, letter, written) => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = await orderQuestion(stage, `sign-${name}`, command);
  for (const [at, box] of [
    ["/now", "li.ask pre.q"],
    [`/tasks/${id}`, ".dock pre.q"],
  ] as const) {
    await page.goto(`${stage.server.url}${at}`);
    await page.locator(box).waitFor();
    expect(await page.locator(box).textContent()).toContain(written);
    if (letter === undefined) continue;
    expect(await page.evaluate(() => document.body.textContent)).not.toContain(letter);
    expect(await page.title()).not.toContain(letter);
  }
});

test("what a command prints cannot move the cursor, set a title or hide: colours stay, the rest is counted", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const tricks = String.raw`printf 'red \033[31mred\033[0m\nold\rnew\n\033]0;owned\007\033[2J\033[10Aup \342\200\256bidi\n'`;
  stage.plays("prints", [{ calls: [run(tricks)] }, { text: "It is done." }]);
  const { id } = await order(stage, "prints", { checks: [] });
  const { threadId = "" } = await comesTo(stage, id, "claimed");
  const { data } = await stage.server.client.listItems(threadId);
  const command = data.find(({ item }) => item.type === "commandExecution")?.item.id ?? "";
  await page.goto(`${stage.server.url}/tasks/${id}?item=${command}&tab=step`);
  const printed = page.getByLabel("Output");
  await printed.waitFor();
  expect((await printed.textContent())?.split("\n").slice(0, 3)).toEqual(["red red", "new", "up \\u{202e}bidi"]);
  expect(await printed.locator("span[class]:not(.ln)").allTextContents()).toEqual(["red"]);
  await page.getByText("3 control sequences were left out").waitFor();
  expect(await page.title()).not.toContain("owned");
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

const LONG = `echo ${"padding ".repeat(2_000)}; rm -rf build`;

test.each([
  ["a screen", { width: 1440, height: 900 }],
  ["a phone", { width: 390, height: 844 }],
])(
  "on %s a question that is longer than its box cannot be allowed before it was scrolled to its end",
  async (name, viewport) => {
    await using seat = await stage.sit({ viewport });
    const { page } = seat;
    const { id } = await orderQuestion(stage, `long-${viewport.width}`, LONG);
    const row = page.locator("li.ask", { hasText: "padding" });
    await row.getByText(/scroll to its end/).waitFor();
    const mark = `short-${viewport.width}`;
    // A question that came later can be answered already, so this one is not off for being new.
    await orderQuestion(stage, mark);
    const later = page.locator("li.ask", { hasText: `touch ${mark}.txt` });
    await enabled(later.getByRole("button", { name: /^Allow once/ })).waitFor();
    expect(await row.getByRole("button", { name: /^Allow once/ }).isDisabled()).toBe(true);
    await row.getByRole("button", { name: /^More for/ }).click();
    expect(await row.getByRole("button", { name: "Allow for this thread" }).count()).toBe(0);
    await row.locator("pre.q").evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await enabled(row.getByRole("button", { name: /^Allow once/ })).waitFor();
    expect(await row.locator("pre.q").textContent()).toMatch(/; rm -rf build$/);
    // On its run too, also where another part of the run was looked at first.
    await page.goto(`${stage.server.url}/tasks/${id}?pane=changes`);
    await page.locator(".dock").waitFor({ state: "attached" });
    if (name === "a phone") await page.locator(".run-tabs").getByRole("button", { name: "Steps" }).click();
    const dock = page.locator(".dock");
    await dock.getByText(/scroll to its end/).waitFor();
    // The agent's question can be denied, so it has settled.
    const back = dock.getByRole("button", { name: "Back" });
    await expect
      .poll(async () => {
        await page.keyboard.press("d");
        return await back.count();
      })
      .toBe(1);
    await back.click();
    for (const button of [/^Allow once/, /^Allow for this thread/])
      expect(await dock.getByRole("button", { name: button }).isDisabled()).toBe(true);
    await page.keyboard.press("a");
    await dock.locator("pre.q").evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await enabled(dock.getByRole("button", { name: /^Allow once/ })).waitFor();
  },
);

test("a megabyte on one line is shown to its end, and the page stays quick", async () => {
  const { client } = stage.server;
  const words = `${"x".repeat(1_000_000)} the end`;
  stage.plays("megabyte", [{ calls: [{ tool: "mcp__greeter__shout", args: { words } }] }, { text: "done" }]);
  const thread = await client.createThread({ workspace: stage.world.workspace });
  await client.startTurn(thread.id, { input: "shout [[megabyte]]", approvalPolicy: "on-request" });
  await using seat = await stage.sit();
  const { page } = seat;
  for (const [at, box] of [
    ["/now", page.locator("li.ask")],
    [`/threads/${thread.id}`, page.locator(".dock")],
  ] as const) {
    await page.goto(`${stage.server.url}${at}`);
    const allow = box.getByRole("button", { name: /^Allow once/ });
    await box.getByText(/scroll to its end/).waitFor();
    expect(await allow.isDisabled()).toBe(true);
    await box.locator("pre.q").evaluate((pre) => pre.scrollTo(0, pre.scrollHeight));
    await enabled(allow).waitFor();
    expect(await box.locator("pre.q").textContent()).toMatch(/the end"\}$/);
    expect((await page.title()).length).toBeLessThan(300);
  }
  await client.interruptTurn(thread.id, (await client.listTurns(thread.id)).data[0]?.id ?? "");
});

const enabled = (button: Locator): Locator => button.and(button.page().locator(":enabled"));
