/** What is true of every page in every state: green is a verdict, words say what colours do, everybody can use it, it fits. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openField, wordsOfTitles, type Field } from "./field.ts";
import { axeFindings, greenWithoutVerdict, settled, sidewaysPx, unnamedControls, visit } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

const THEMES = ["dark", "light"] as const;
const WIDE = { width: 1440, height: 900 } as const;
const PHONE = { width: 390, height: 844 } as const;
const NARROW = { width: 320, height: 700 } as const;
/** Of a screen of 1440 by 900 at 200 %. */
const ZOOMED = { width: 720, height: 450 } as const;

let stage: Stage;
let field: Field;
beforeAll(async () => {
  stage = await openStage({ config: () => Promise.resolve("[tasks]\nconcurrency = 8\n") });
  field = await openField(stage);
  await stage.server.client.evidence.verify({});
}, 120_000);
afterAll(async () => {
  field.close();
  await stage[Symbol.asyncDispose]();
});

type Look = (page: Page, theme: (typeof THEMES)[number]) => Promise<readonly string[]>;

/** A theme has other colours and nothing else. */
const axe: Look = (page, theme) => axeFindings(page, theme === THEMES[0] ? undefined : ["color-contrast"]);

/** What is found on every page in both themes, each with its page and theme. */
async function onEveryPage(page: Page, looks: readonly Look[]): Promise<string[]> {
  const found: string[] = [];
  for (const [name, address] of Object.entries(field.pages)) {
    await visit(page, address);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      for (const look of looks)
        found.push(...(await look(page, colorScheme)).map((text) => `${name}, ${colorScheme}: ${text}`));
    }
  }
  return found;
}

test("nothing on any page is green but what is verified, and axe-core finds nothing, in both themes", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  expect(await onEveryPage(page, [greenWithoutVerdict, axe])).toEqual([]);
  // The look itself sees what is planted.
  await page.evaluate(() => {
    const planted = document.createElement("p");
    planted.textContent = "exit 0";
    planted.style.color = "rgb(69, 209, 154)";
    document.querySelector("#main")?.append(planted);
  });
  expect(await greenWithoutVerdict(page)).toEqual([expect.stringContaining("exit 0")]);
}, 120_000);

test("on a phone axe-core finds nothing either, in both themes, and nothing is green but what is verified", async () => {
  await using seat = await stage.sit({ viewport: PHONE, hasTouch: true });
  expect(await onEveryPage(seat.page, [greenWithoutVerdict, axe])).toEqual([]);
}, 120_000);

test("on 320 pixels, at 200 %, and with large text no page scrolls sideways; every control has a name", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const found: string[] = [];
  for (const textSize of ["normal", "large"]) {
    await page.evaluate(
      (size) => localStorage.setItem("heddle.preferences", JSON.stringify({ textSize: size })),
      textSize,
    );
    await page.reload();
    for (const [name, address] of Object.entries(field.pages)) {
      await visit(page, address);
      for (const viewport of [NARROW, ZOOMED]) {
        await page.setViewportSize(viewport);
        const px = await sidewaysPx(page);
        if (px > 0) found.push(`${name}, ${viewport.width} px, ${textSize}: ${px} px`);
      }
      if (textSize === "large") found.push(...(await unnamedControls(page)).map((text) => `${name}: ${text}`));
    }
  }
  expect(found).toEqual([]);
}, 120_000);

test("with reduced motion nothing moves, and what runs is still drawn as running", async () => {
  await using seat = await stage.sit({ reducedMotion: "reduce" });
  const { page } = seat;
  for (const at of ["/now", "/tasks", `/tasks/${field.tasks.running.id}`]) {
    await visit(page, at);
    await page.locator(".i-running").first().waitFor();
    expect([at, await page.evaluate(() => document.getAnimations().length)]).toEqual([at, 0]);
  }
});

test("what opens on a page is as the page: menus, questions, the search, the keys, a lost connection", async () => {
  await using seat = await stage.sit();
  const { page, context } = seat;
  const found: string[] = [];
  const look = async (name: string): Promise<void> => {
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      for (const one of [greenWithoutVerdict, axe, unnamedControls])
        found.push(...(await one(page, colorScheme)).map((text) => `${name}, ${colorScheme}: ${text}`));
    }
  };
  const asking = page.locator("li.ask", { hasText: "touch asking.txt" });
  await asking.getByRole("button", { name: /^More for/ }).click();
  await look("menu");
  await page.keyboard.press("Escape");
  await asking.getByRole("button", { name: /^Deny…/ }).click();
  await look("deny");
  await page.keyboard.press("Control+k");
  await page.getByRole("option").first().waitFor();
  await look("search");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Back" }).click();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await look("keys");
  await page.keyboard.press("Escape");
  await visit(page, "/tasks");
  await page.locator(".pick-box").first().check();
  await look("selection");
  await context.setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await page
    .getByRole("status")
    .filter({ hasText: /^as of / })
    .waitFor();
  await look("no connection");
  expect(found).toEqual([]);
});

test("titles say the state first, and what has no known price is never $0.00", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const titles: Record<string, string> = {};
  const free: string[] = [];
  for (const [name, address] of Object.entries(field.pages)) {
    await visit(page, address);
    titles[name] = await page.title();
    const text = await page.locator("body").innerText();
    free.push(...text.split("\n").flatMap((line) => (/\$0\.00(?!\d)/.test(line) ? [`${name}: ${line}`] : [])));
  }
  expect(free).toEqual([]);
  const expected = Object.entries(wordsOfTitles()).map(([name, word]) => [`run, ${name}`, `${word}: ${name} · Heddle`]);
  expect(titles).toMatchObject({
    ...Object.fromEntries(expected),
    now: expect.stringMatching(/^3 wait for you · Heddle$/),
    thread: expect.stringMatching(/^Idle: .+ · Heddle$/),
    tasks: "Tasks · Heddle",
    nowhere: "Not found · Heddle",
  });
});

test("what asked a model without a known price is called unknown on Now, in Tasks, on its run and in Usage", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  for (const [at, where] of [
    ["/now", page.locator(".facts", { hasText: "Spent today" })],
    ["/tasks", page.locator("tr", { hasText: "verified" }).last()],
    [`/tasks/${field.tasks.verified.id}`, page.locator(".budget")],
    ["/usage", page.locator("#main")],
  ] as const) {
    await visit(page, at);
    await where.waitFor();
    expect([at, await where.innerText()]).toEqual([at, expect.stringMatching(/unknown|without a price/)]);
  }
});

test("a claim without checks is called not verified wherever it is shown", async () => {
  await using seat = await stage.sit();
  const { page } = seat;
  const { id } = field.tasks.claimed;
  for (const [at, where] of [
    ["/now", page.locator("li.ask", { hasText: "claimed" }).last()],
    ["/tasks", page.locator("tr", { hasText: "claimed" }).last()],
    ["/tasks?view=board", page.locator(".bc", { hasText: "claimed" })],
    [`/tasks/${id}`, page.locator(".state")],
    [`/tasks/${id}`, page.locator(".c-verdict", { hasText: "nothing can verify it" })],
  ] as const) {
    await visit(page, at);
    expect([at, await where.innerText()]).toEqual([at, expect.stringMatching(/not verified/i)]);
  }
});

test("what was found before the last edits says how many there were since, and is not the present state", async () => {
  await using seat = await stage.sit({ at: `/tasks/${field.tasks.stale.id}` });
  const { page } = seat;
  const contract = page.getByRole("complementary", { name: "Contract" });
  await contract.getByText("2 edits since the checks last ran, so what they found is old.").waitFor();
  await contract.getByText(/, before the last edits$/).waitFor();
  expect(await contract.locator(".checks .ok").count()).toBe(0);
  expect(await contract.locator(".c-verdict").innerText()).toMatch(/^Not verified/);
});

test("vacuous, an error, violated and not run are words beside the check, in the contract and in the list", async () => {
  await using seat = await stage.sit({ at: `/tasks/${field.tasks.verified.id}` });
  const { page } = seat;
  const vacuous = page.locator(".contract .checks li", { hasText: "it was there before" });
  expect(await vacuous.innerText()).toMatch(/vacuous/);
  expect(await page.locator(".contract .checks li").first().innerText()).not.toMatch(/vacuous/);
  await visit(page, `/tasks/${field.tasks.violated.id}`);
  await page.locator(".contract .violation", { hasText: /Violation:.*kept\.txt/ }).waitFor();
  const broken = page.locator(".contract .checks li", { hasText: "it ends in time" });
  expect([await broken.innerText(), await broken.locator(".i-x.no").count()]).toEqual([
    expect.stringMatching(/error:[\s\S]*could not run: [\s\S]*after 1/),
    1,
  ]);
  await visit(page, `/tasks/${field.tasks.running.id}`);
  await page.locator(".contract .checks li", { hasText: "not run yet" }).waitFor();
  await visit(page, "/tasks");
  const pips = async (name: string): Promise<string | null> =>
    await page
      .locator("tr", { has: page.getByRole("link", { name, exact: true }) })
      .locator(".pips")
      .getAttribute("aria-label");
  expect([await pips("verified"), await pips("violated"), await pips("running"), await pips("claimed")]).toEqual([
    "verified, checks: 2 of 2, 1 vacuous",
    "checks: a violation",
    "checks: not run",
    "checks: no checks",
  ]);
});

test("output that was cut says how much is left out, where it was cut", async () => {
  await using seat = await stage.sit({ at: field.pages["step"] ?? "" });
  const { page } = seat;
  const mark = page.locator(".cutmark", { hasText: "left out" });
  await mark.waitFor();
  expect(await mark.innerText()).toMatch(/^[\d.]+ (?:kB|MB) left out in the middle\s+Show the whole output/);
});

test("the login page is as the others", async () => {
  await using context = await stage.browser.newContext({ viewport: WIDE });
  const page = await context.newPage();
  await page.goto(`${stage.server.url}/login`);
  await settled(page);
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    for (const look of [axeFindings, greenWithoutVerdict, unnamedControls]) expect(await look(page)).toEqual([]);
  }
  await page.setViewportSize(NARROW);
  expect(await sidewaysPx(page)).toBe(0);
});
