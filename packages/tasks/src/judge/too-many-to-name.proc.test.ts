/** 13: a verdict names what it rests on; where that is more than can be named, its owner says what the work is. */
import { expect, test } from "vitest";
import { judge, openTaskFixture, type TaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";

const FILLERS = 240;
const options: TaskFixtureOptions = {
  files: { "check.sh": 'for f in src/*.sh; do . "$PWD/$f"; done\ntest "$ok" = 1\n', "src/a.sh": "ok=0\n" },
  checks: [{ kind: "command", name: "check", run: ["sh", "check.sh"] }],
};

async function fill(fixture: TaskFixture): Promise<void> {
  for (let n = 100; n < 100 + FILLERS; n += 1) await fixture.write(`src/m${n}.sh`, ":\n");
  await fixture.write("src/z.sh", "ok=1\n");
}

test("13: work of more files than a verdict names is put to its owner, named by a wildcard or not, and can be accepted whole", async () => {
  const wide = { kind: "changed" as const, paths: ["src/**"] };
  for (const checks of [options.checks ?? [], [...(options.checks ?? []), wide]]) {
    await using fixture = await openTaskFixture({ ...options, checks });
    const baseline = await fixture.takeBaseline();
    await fill(fixture);
    const verdict = await fixture.verify(baseline);
    const message: unknown = expect.stringContaining("more files than a verdict can name");
    expect(verdict).toMatchObject({
      passed: false,
      review: { reasons: [{ kind: "rests", message, count: FILLERS + 1 }] },
    });
    expect(verdict.results.every(({ outcome }) => outcome === "passed")).toBe(true);
    const { deliver } = verdict.review ?? {};
    expect(deliver).toHaveLength(FILLERS + 1);
    expect(await fixture.verify(baseline, deliver)).toMatchObject({
      passed: true,
      work: { deliveredCount: FILLERS + 1 },
    });
  }
});

test("13: with deliver stated, the same work is verified, and says how many files it rests on", async () => {
  const verdict = await judge({ ...options, spec: { deliver: ["src/**"] } }, fill);
  expect(verdict).toMatchObject({
    passed: true,
    results: [{ restsOnCount: FILLERS + 1 }],
    work: { deliveredCount: FILLERS + 1 },
  });
});
