/** 13: a setup may run what the agent delivered, and must not make other tests of it. */
import { expect, test } from "vitest";
import { judge, type WorkPlaceOptions } from "../../test/work-place.ts";
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
const options: WorkPlaceOptions = {
  files,
  git: true,
  checks: [{ kind: "command", run: ["sh", "test/check.sh"] }],
  spec: { deliver: ["src/**"], setup: { run: "sh build.sh" } },
};
const after = (build: string, app = "echo right\n"): Promise<Verdict> =>
  judge(options, async (place) => {
    await place.write("src/build.sh", `${build}\n`);
    await place.write("src/app.sh", app);
  });

test("13: a setup that rewrites, removes or replaces what judges is named, and its owner decides", async () => {
  const named = async (build: string, app?: string): Promise<unknown> => (await after(build, app)).review?.reasons;
  expect(await named("echo true > test/check.sh", "#\n")).toMatchObject([{ kind: "setup", files: ["test/check.sh"] }]);
  expect(await named("rm -r test/deep; mkdir test/deep")).toMatchObject([{ files: ["test/deep/data"] }]);
  expect(await named("rm -r test/deep; ln -s ../src test/deep")).toMatchObject([{ files: ["test/deep/data"] }]);
});

test("13: what a setup adds, what git ignores and what is delivered is its business", async () => {
  expect(
    await after("mkdir -p node_modules; echo x > node_modules/x; echo 2 > out/cache; echo '#' >> src/app.sh"),
  ).toMatchObject({
    passed: true,
  });
});
