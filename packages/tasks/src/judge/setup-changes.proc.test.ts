/** 13: a setup may run what the agent delivered, and must not make other tests of it. */
import { expect, test } from "vitest";
import { judge, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import type { Verdict } from "./verify.ts";

const files = {
  "build.sh": ". ./src/build.sh\n",
  "src/build.sh": "true\n",
  "src/app.sh": "echo wrong\n",
  "test/check.sh": '[ "$(sh src/app.sh)" = right ]\n',
  "test/deep/data": "1\n",
  ".gitignore": "out\n",
  "out/cache": "1\n",
};
const options: TaskFixtureOptions = {
  files,
  git: true,
  checks: [{ kind: "command", run: ["sh", "test/check.sh"] }],
  spec: { deliver: ["src/**"], setup: { run: "sh build.sh" } },
};
const after = (build: string, app = "echo right\n"): Promise<Verdict> =>
  judge(options, async (fixture) => {
    await fixture.write("src/build.sh", `${build}\n`);
    await fixture.write("src/app.sh", app);
  });

test("13: a setup that rewrites, removes or replaces what judges is named, and its owner decides", async () => {
  const named = async (build: string, app?: string): Promise<unknown> => (await after(build, app)).review?.reasons;
  expect(await named("echo true > test/check.sh", "#\n")).toMatchObject([{ kind: "setup", files: ["test/check.sh"] }]);
  expect(await named("rm -r test/deep; mkdir test/deep")).toMatchObject([{ files: ["test/deep/data"] }]);
  expect(await named("rm -r test/deep; ln -s ../src test/deep")).toMatchObject([{ files: ["test/deep/data"] }]);
  expect(await named("chmod 511 test/deep")).toMatchObject([{ files: ["test/deep"] }]);
});

test("13: what code that a setup runs adds beside what git ignores counts only where the checks pass without it", async () => {
  const check = '[ ! -e fake/on ] || exit 0; [ ! -d none ] || exit 0; [ "$(sh src/app.sh)" = right ]\n';
  // Made by the owner's own setup as well, at the beginning.
  const made = {
    "build.sh": ". src/build.sh; mkdir -p dist; touch dist/x\n",
    "test/check.sh": `[ -e dist/x ] || exit 1; ${check}`,
  };
  const judged = (build: string, app: string, more: TaskFixtureOptions): Promise<Verdict> =>
    judge({ ...more, files: { ...files, ...made } }, async (fixture) => {
      await fixture.write("src/build.sh", build);
      await fixture.write("src/app.sh", app);
    });
  const { git: _, ...plain } = options;
  for (const [plant, name, more] of [
    ["mkdir -p fake; touch fake/on\n", "fake", options],
    ["mkdir none\n", "none", plain],
  ] as const) {
    const asked = { passed: false, review: { reasons: [{ kind: "setup", files: [name] }] } };
    expect(await judged(plant, "echo wrong; # tried\n", more), plant).toMatchObject(asked);
    // A repair does not need it.
    expect(await judged(plant, "echo right\n", more), plant).toMatchObject({ passed: true });
  }
});

test("13: what a setup adds, what git ignores and what is delivered is its business", async () => {
  expect(
    await after("mkdir -p node_modules; echo x > node_modules/x; echo 2 > out/cache; echo '#' >> src/app.sh"),
  ).toMatchObject({
    passed: true,
  });
});
