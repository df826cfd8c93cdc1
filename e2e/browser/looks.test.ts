/** What is true of every page in every state: green is a verdict, everybody can use it, it fits on a phone. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openField, type Field } from "./field.ts";
import { axeFindings, greenWithoutVerdict, settled, sidewaysPx, visit } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

const THEMES = ["dark", "light"] as const;
const WIDE = { width: 1440, height: 900 } as const;
const NARROW = { width: 320, height: 700 } as const;

let stage: Stage;
let field: Field;
beforeAll(async () => {
  stage = await openStage();
  field = await openField(stage);
});
afterAll(() => stage[Symbol.asyncDispose]());

/** What `look` finds on every page in both themes, each with its page and theme. */
async function onEveryPage(page: Page, look: (page: Page) => Promise<readonly string[]>): Promise<string[]> {
  const found: string[] = [];
  for (const [name, address] of Object.entries(field.pages)) {
    await visit(page, address);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      found.push(...(await look(page)).map((text) => `${name}, ${colorScheme}: ${text}`));
    }
  }
  return found;
}

test("nothing on any page is green but what is verified, in both themes", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  expect(await onEveryPage(page, greenWithoutVerdict)).toEqual([]);
  // The look itself sees what is planted.
  await page.evaluate(() => {
    const planted = document.createElement("p");
    planted.textContent = "exit 0";
    planted.style.color = "rgb(69, 209, 154)";
    document.querySelector("#main")?.append(planted);
  });
  expect(await greenWithoutVerdict(page)).toEqual([expect.stringContaining("exit 0")]);
});

test("a claim without checks is called not verified, what has no known price is never $0.00, titles are the page's own", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const titles: string[] = [];
  const free: string[] = [];
  for (const [name, address] of Object.entries(field.pages)) {
    await visit(page, address);
    titles.push(await page.title());
    const text = await page.locator("body").innerText();
    // A task that asked no model has cost nothing, and that is known.
    const hasAsked = name !== "run, cancelled" && name !== "run, dependent";
    if (hasAsked)
      free.push(...text.split("\n").flatMap((line) => (/\$0\.00(?!\d)/.test(line) ? [`${name}: ${line}`] : [])));
    if (name === "now") expect(text).toMatch(/claimed, not verified/i);
    if (name === "now") expect(titles.at(-1)).toMatch(/^\d+ waits? for you/);
  }
  expect(free).toEqual([]);
  expect(titles.filter((title) => !title.endsWith("Heddle") || title === "Heddle")).toEqual([]);
});

test("axe-core finds nothing on any page, in both themes", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  expect(await onEveryPage(page, axeFindings)).toEqual([]);
});

test("on a screen of 320 pixels no page scrolls sideways", async () => {
  await using seat = await stage.sit({ viewport: NARROW });
  const { page } = seat;
  const wide: string[] = [];
  for (const [name, address] of Object.entries(field.pages)) {
    await visit(page, address);
    const px = await sidewaysPx(page);
    if (px > 0) wide.push(`${name}: ${px} px`);
  }
  expect(wide).toEqual([]);
});

test("the login page is as the others", async () => {
  await using context = await stage.browser.newContext({ viewport: WIDE });
  const page = await context.newPage();
  await page.goto(`${stage.server.url}/login`);
  await settled(page);
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    expect(await axeFindings(page)).toEqual([]);
    expect(await greenWithoutVerdict(page)).toEqual([]);
  }
  await page.setViewportSize(NARROW);
  expect(await sidewaysPx(page)).toBe(0);
});
