import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LintAnswer } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import { openHttpWorld } from "../../test/http-world.ts";

test("a task is looked at before it is added: mistakes with their places, or the spec with every default", async () => {
  await using world = await openHttpWorld();
  const lint = async (body: object, token = world.tokens.owner): Promise<LintAnswer> => {
    const { json, status } = await world.ask("/api/tasks/lint", { method: "POST", body, token });
    expect(status).toBe(200);
    return json as LintAnswer;
  };
  const typo = await lint({ spec: "goal: say hello\nchecsk:\n  - file-exists: a\n" });
  expect(typo).toMatchObject({ isValid: false, problems: [{ line: 2, column: 1, key: "checsk" }] });
  expect(typo.problems[0]?.message).toContain("did you mean");
  expect(await lint({ spec: { goal: "x", chekcs: [] } })).toMatchObject({
    isValid: false,
    problems: [{ key: "chekcs" }],
  });
  expect((await lint({ spec: { goal: "x", chekcs: [] } })).problems[0]).not.toHaveProperty("line");
  const good = await lint({ spec: "goal: say hello\nchecks:\n  - file-exists: hello.txt\n" });
  expect(good).toMatchObject({
    isValid: true,
    problems: [],
    spec: { goal: "say hello", workspace: world.home, budget: { turns: 20 } },
  });
  expect(good).not.toHaveProperty("results");
  expect((await lint({ spec: { goal: "x", workspace: "/nowhere/at/all" } })).problems[0]?.message).toContain(
    "/nowhere",
  );
  const before = await world.heddle.journal.position();
  const refused = { spec: { goal: "x", sandbox: "danger-full-access" } };
  const { status } = await world.ask("/api/tasks/lint", { method: "POST", body: refused, token: world.tokens.user });
  expect(status).toBe(403);
  expect(await world.heddle.journal.position()).toBe(before);
});

test("a dry run says what the checks find now, on a copy of the folder", async () => {
  await using world = await openHttpWorld();
  const workspace = join(world.home, "work");
  await mkdir(workspace);
  await writeFile(join(workspace, "there.txt"), "x");
  const spec = { goal: "x", workspace, checks: [{ "file-exists": "there.txt" }, { "file-exists": "missing.txt" }] };
  const { json } = await world.ask("/api/tasks/lint", { method: "POST", body: { spec, run: true } });
  expect((json as LintAnswer).results?.map(({ outcome }) => outcome)).toEqual(["passed", "failed"]);
});

test("an order of a mebibyte with 90,000 keys is refused at once, with the reason, as text and as JSON", async () => {
  await using world = await openHttpWorld();
  const table = Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`k${at}`, 1]));
  const lint = (body: object) => world.ask("/api/tasks/lint", { method: "POST", body });
  const cpu = process.cpuUsage();
  for (const spec of [JSON.stringify(table), `goal: x\n${Object.keys(table).join(": 1\n")}: 1\n`]) {
    const { json } = await lint({ spec });
    expect(json).toMatchObject({ isValid: false, problems: [{ message: expect.stringContaining("over 20000") }] });
  }
  expect((await lint({ spec: { goal: "x", ...table } })).status).toBe(200);
  // Reading them whole took seconds each.
  expect(process.cpuUsage(cpu).user / 1000).toBeLessThan(3_000);
});
