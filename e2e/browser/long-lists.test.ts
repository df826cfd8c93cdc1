/** Lists of any length: what is in sight is drawn, what is not is said, and keys lead through all of it. */
import { openJournal } from "@heddle/journal";
import { TaskSpec } from "@heddle/protocol/tasks";
import { openTasks } from "@heddle/tasks";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { World } from "../world.ts";
import { axeFindings, settled } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

const TASKS = 450;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ config: writeTasks });
});
afterAll(() => stage[Symbol.asyncDispose]());

/** They wait for one that is paused, so that nothing carries them out. */
async function writeTasks({ home, workspace }: World): Promise<string> {
  await using journal = await openJournal({ home, secrets: [] });
  const tasks = openTasks({ journal }).as("user:owner");
  const add = (name: string, dependsOn: readonly string[]): ReturnType<typeof tasks.add> =>
    tasks.add({ spec: TaskSpec.parse({ name, workspace, goal: "g", dependsOn }), source: { kind: "cli" } });
  const { id } = await add("the first", []);
  await tasks.pause(id);
  await Promise.all(Array.from({ length: TASKS }, (_, index) => add(`task ${index}`, [id])));
  return "";
}

/** Presses the button for more rows until there is none. */
async function loadAll(page: Page): Promise<void> {
  const more = page.locator(".more-rows");
  while ((await more.count()) > 0) {
    const before = await page.locator("table").getAttribute("aria-rowcount");
    await more.click();
    await expect.poll(() => page.locator("table").getAttribute("aria-rowcount")).not.toBe(before);
  }
}

test.each([
  ["/tasks", TASKS + 1],
  ["/evidence", TASKS + 2],
] as const)("%s draws the rows in sight, and says how many there are", async (address, count) => {
  await using seat = await stage.sit({ at: address });
  const { page } = seat;
  await settled(page);
  await loadAll(page);
  const table = page.locator("table");
  expect(Number(await table.getAttribute("aria-rowcount"))).toBeGreaterThanOrEqual(count);
  const drawn = (): Promise<readonly number[]> =>
    page
      .locator("tr[aria-rowindex]")
      .evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("aria-rowindex"))));
  const scrollTo = (px: number): Promise<void> =>
    table.evaluate((one, to) => {
      for (let at = one.parentElement; at !== null; at = at.parentElement) at.scrollTop = to;
    }, px);
  await scrollTo(0);
  await expect.poll(async () => (await drawn())[0]).toBe(1);
  const atFirst = await drawn();
  expect(atFirst.length).toBeLessThan(150);
  await scrollTo(1_000_000);
  const all = Number(await table.getAttribute("aria-rowcount"));
  await expect.poll(async () => (await drawn()).at(-1)).toBe(all);
  const atLast = await drawn();
  expect(atLast.length).toBeLessThan(150);
  expect(atLast).toEqual(atLast.map((_, index) => (atLast[0] ?? 0) + index));
  expect(await axeFindings(page)).toEqual([]);
});

test("keys lead to the last of many rows and back, and the chosen one is in sight", async () => {
  await using seat = await stage.sit({ at: "/tasks" });
  const { page } = seat;
  await settled(page);
  await loadAll(page);
  for (const key of ["End", "Home"]) {
    await page.keyboard.press(key);
    await page.locator("tr.sel").waitFor();
    await expect
      .poll(() => page.locator("tr.sel").getAttribute("aria-rowindex"))
      .toBe(key === "End" ? String(TASKS + 1) : "1");
    await expect
      .poll(() => page.locator("tr.sel").evaluate((row) => row.getBoundingClientRect().top))
      .toBeLessThan(900);
  }
});
