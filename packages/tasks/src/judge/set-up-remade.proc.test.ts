/** 13: a file of the work that the setup makes again is judged as the setup made it, because that is what its owner will have. */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judge, openTaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";

/** `gen/sum.sh` is made of `src/sum.tmpl`. */
function generated(spec: TaskFixtureOptions["spec"]): TaskFixtureOptions {
  return {
    files: {
      "src/sum.tmpl": "echo wrong\n",
      "gen/sum.sh": "echo wrong\n",
      "check.sh": '[ "$(sh gen/sum.sh)" = right ]\n',
    },
    checks: [
      { kind: "command", run: "sh check.sh" },
      { kind: "changed", paths: ["src/sum.tmpl"] },
    ],
    spec: { setup: { run: "mkdir -p gen; cp src/sum.tmpl gen/sum.sh", makes: ["gen/**"] }, ...spec },
  };
}

const SPECS: readonly (readonly [name: string, spec: TaskFixtureOptions["spec"]])[] = [
  ["with deliver", { deliver: ["src/**", "gen/**"] }],
  ["without deliver", {}],
];

test.each(SPECS)(
  "13: an edited product of the setup does not stand for its source, and a stale one not against it, %s",
  async (_name, spec) => {
    const options = generated(spec);
    const edited = await judge(options, async (fixture) => {
      await fixture.write("gen/sum.sh", "echo right\n");
      await fixture.write("src/sum.tmpl", "echo wrong again\n");
    });
    expect(edited).toMatchObject({ passed: false, results: [{ outcome: "failed" }, {}] });
    const stale = await judge(options, async (fixture) => {
      await fixture.write("gen/sum.sh", "echo stale\n");
      await fixture.write("src/sum.tmpl", "echo right\n");
    });
    expect(stale).toMatchObject({ passed: true, work: { made: ["gen/sum.sh"] } });
    const removed = await judge(options, async (fixture) => {
      await fixture.remove("gen");
      await fixture.write("src/sum.tmpl", "echo right\n");
    });
    expect(removed).toMatchObject({ passed: true, work: { made: ["gen/sum.sh"] } });
  },
);

test("13: what the setup makes whatever the work says stands above the work", async () => {
  const options: TaskFixtureOptions = {
    files: { "src/app.sh": "echo wrong\n", "helper.in": "right\n", "src/want": "right\n" },
    checks: [{ kind: "command", run: '[ "$(sh src/app.sh)" = "$(cat src/want)" ]' }],
    spec: { deliver: ["src/**"], setup: { run: "cp helper.in src/want; rm -f src/skip" } },
  };
  expect(await judge(options, (fixture) => fixture.write("src/want", "wrong\n"))).toMatchObject({
    passed: false,
    results: [{ outcome: "failed" }],
  });
  const repaired = await judge(options, async (fixture) => {
    await fixture.write("src/want", "wrong\n");
    await fixture.write("src/app.sh", "echo right\n");
  });
  expect(repaired).toMatchObject({ passed: true });
  const checked = { ...options, checks: [{ kind: "command" as const, run: "test -e src/skip" }] };
  expect(await judge(checked, (fixture) => fixture.write("src/skip", ""))).toMatchObject({ passed: false });
});

test("13: delivered files that the setup makes otherwise where `makes` does not name them have to pass both ways", async () => {
  const options: TaskFixtureOptions = {
    files: { "src/app.sh": "echo wrong\n", "src/build.sh": "true\n" },
    checks: [{ kind: "command", run: '[ "$(sh src/app.sh)" = right ]' }],
    spec: { deliver: ["src/**"], setup: { run: "sh src/build.sh" } },
  };
  await using fixture = await openTaskFixture(options);
  const baseline = await fixture.takeBaseline();
  await fixture.write("src/app.sh", "echo still wrong\n");
  await fixture.write("src/build.sh", "echo echo right > src/app.sh\n");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: false,
    review: { reasons: [{ kind: "setup", files: ["src/app.sh"] }] },
  });
  await fixture.write("src/app.sh", "echo right # by hand\n");
  expect(await fixture.verify(baseline)).toMatchObject({ passed: true });
  await chmod(join(fixture.workspace, "src/app.sh"), 0o755);
  await fixture.write("src/build.sh", "chmod 600 src/app.sh; echo echo wrong > src/app.sh\n");
  expect(await fixture.verify(baseline)).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
});
