/** A run as a file: what `heddle task export --html` writes is read from file://, with no server, no network and no script. */
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Task } from "@heddle/client";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run as runHeddle } from "../world.ts";
import { comesTo, order, run } from "./orders.ts";
import { axeFindings, greenWithoutVerdict, sidewaysPx } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

const MARKUP = [
  '<img src="http://127.0.0.1:9/x" onerror="document.title=1"></title></style><script>alert(1)</script>',
  "<svg onload=alert(1)>",
  '[click](javascript:alert(1)) ![x](http://127.0.0.1:9/y) <a style="color:red" href="javascript:1">x</a>',
  'a" style="display:none\u202e\u200b\u001b[2K',
].join(" ");
const PATCH = ["*** Begin Patch", "*** Add File: <b>notes</b>.txt", `+${MARKUP}`, "*** End Patch"].join("\n");
const PRINTED_BYTES = 200_000;
const LONG = `A long story. ${"and then ".repeat(10_000)}`;

let stage: Stage;
let task: Task;
let file: string;
let written: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  stage = await openStage();
  stage.plays("hostile", [
    { text: MARKUP, calls: [{ tool: "apply_patch", args: PATCH }] },
    {
      text: "Now much output.",
      calls: [
        run(
          `printf 'first line\\n'; head -c ${PRINTED_BYTES} /dev/zero | tr '\\0' 'x' | fold -w 90; echo '${MARKUP.replaceAll("'", "")}'`,
        ),
      ],
    },
    { text: LONG, calls: [run("exit 3")] },
    { calls: [{ tool: "task_report", args: { status: "done", summary: `it is done ${MARKUP}` } }] },
    { text: "It is done." },
  ]);
  const { id } = await order(stage, "hostile", {
    name: `hostile ${MARKUP}`,
    goal: `Write it. ${MARKUP} [[hostile]]`,
    labels: ["<i>label</i>"],
    checks: [{ name: `check ${MARKUP}`, "file-exists": "<b>notes</b>.txt" }],
  });
  task = await comesTo(stage, id, "verified");
  file = path.join(stage.world.root, "run.html");
  written = JSON.parse(await heddle("task", "export", id, "--html", "-o", file, "--json")) as typeof written;
});
afterAll(() => stage[Symbol.asyncDispose]());

async function heddle(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHeddle(args, { world: stage.world });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
}

function leftOutOf(answer: typeof written): { readonly bytes: number } {
  return answer["leftOut"] as { readonly bytes: number };
}

interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** Every request that the page made for something else than itself. */
  readonly requests: readonly string[];
}

async function openFile(at: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await stage.browser.newContext({ viewport: { width: 1440, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const requests: string[] = [];
  const url = pathToFileURL(at).href;
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) requests.push(request.url());
  });
  await page.goto(url);
  return { page, requests, [Symbol.asyncDispose]: () => context.close() };
}

test("it says what was written: where, how large, what was left out, and the hashes of the record", async () => {
  const { size } = await stat(file);
  expect(size).toBeLessThan(500_000);
  expect(written).toMatchObject({
    file,
    bytes: size,
    taskId: task.id,
    threadId: task.threadId,
    state: "verified",
    verdict: "clean",
    leftOut: { steps: 0, turns: 0, entries: 0 },
  });
  const { streams } = written as { streams: readonly { stream: string; events: number; head: string }[] };
  expect(leftOutOf(written).bytes).toBeGreaterThan(LONG.length - 40_000);
  expect(streams.map(({ stream }) => stream)).toEqual([task.id, task.threadId]);
  const html = await readFile(file, "utf8");
  for (const { head } of streams) expect(html).toContain(head);
});

test("it has the verdict and its grounds, every step with all of it, the changes and the record, and no script at all", async () => {
  await using opened = await openFile(file, { javaScriptEnabled: false });
  const { page } = opened;
  const text = await page.locator("body").innerText();
  for (const words of [
    "Verified",
    "1 of 1 check passed.",
    "The agent says",
    "Heddle found",
    "Claims done:",
    "Checks passed.",
    "heddle verify",
    "exit 3",
  ])
    expect(text).toContain(words);
  const step = page.locator("details", { has: page.locator("summary.st", { hasText: "printf" }) }).last();
  expect(await step.locator("pre.out").isVisible()).toBe(false);
  await step.locator("summary.st").click();
  expect(await step.locator("pre.out").innerText()).toContain("first line");
  expect(await step.innerText()).toMatch(/\d+ kB left out in the middle/);
  expect(text).toContain(`${Math.round(Number(leftOutOf(written).bytes) / 1000)} kB of outputs and messages`);
  expect(await page.locator("script").count()).toBe(0);
  expect(opened.requests).toEqual([]);
});

test("what agents wrote makes no element, no request, and hides nothing", async () => {
  await using opened = await openFile(file);
  const { page } = opened;
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.reload();
  for (const details of await page.locator("details").all())
    await details.evaluate((one) => one.setAttribute("open", ""));
  expect(
    await page.evaluate(() => [
      document.querySelectorAll("img, script, iframe, object, link, base, form, [onload], [onerror], [style]").length,
      document.querySelectorAll("a[href^='javascript:']").length,
      document.querySelectorAll("style").length,
      document.title.includes("<script>"),
    ]),
  ).toEqual([0, 0, 1, true]);
  const body = (await page.locator("body").textContent()) ?? "";
  expect(body).toContain('onerror="document.title=1"');
  for (const hidden of ["\u202e", "\u200b", "\u001b"]) expect(body).not.toContain(hidden);
  expect(complaints).toEqual([]);
  expect(opened.requests).toEqual([]);
  // The policy holds against what would be planted.
  await page.evaluate(() => {
    document.body.insertAdjacentHTML("beforeend", '<img src="http://127.0.0.1:9/planted"><p id="p" style="color:red">');
    const script = document.createElement("script");
    script.textContent = "document.title = 'ran'";
    document.body.append(script);
  });
  expect(await page.title()).not.toBe("ran");
  expect(await page.locator("#p").getAttribute("style")).toBe("color:red");
  expect(await page.locator("#p").evaluate((one) => getComputedStyle(one).color)).not.toBe("rgb(255, 0, 0)");
  await expect.poll(() => complaints.length).toBeGreaterThanOrEqual(3);
});

test.each(["dark", "light"] as const)("in %s axe-core finds nothing, and green is a verdict", async (colorScheme) => {
  await using opened = await openFile(file, { colorScheme });
  const { page } = opened;
  expect(await axeFindings(page)).toEqual([]);
  for (const details of await page.locator("details").all())
    await details.evaluate((one) => one.setAttribute("open", ""));
  expect(await axeFindings(page)).toEqual([]);
  expect(await greenWithoutVerdict(page)).toEqual([]);
  const background = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const system = await background();
  await page.getByText(colorScheme === "dark" ? "light" : "dark", { exact: true }).click();
  expect(await background()).not.toBe(system);
});

test("it fits on a phone", async () => {
  await using opened = await openFile(file, { viewport: { width: 320, height: 700 } });
  expect(await sidewaysPx(opened.page)).toBe(0);
});

test("a thread is written too, to standard output as well, and says that nothing of it was checked", async () => {
  const html = await heddle("threads", "export", task.threadId ?? "", "--html");
  expect(html).toContain("so nothing of it was checked");
  expect(html.endsWith("</html>\n")).toBe(true);
  const { code, stderr } = await runHeddle(["threads", "export", task.threadId ?? "", "--html", "--json"], {
    world: stage.world,
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("-o run.html")]);
});
