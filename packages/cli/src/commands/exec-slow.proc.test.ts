import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { jsonLines, openMockWorld, threadOf } from "../../test/mock-model.ts";

test("12.13: a run that stood still for five seconds before its first request says where, in stream, result and record", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const result = path.join(mock.world.root, "result.json");
  const env = { HEDDLE_FAILPOINT: "turn.before-admit=stall" };
  const ran = await mock.exec(["--json", "--result-json", result, "go"], { env });
  expect(ran).toMatchObject({ code: 0 });
  const told = {
    code: "start.slow",
    message: expect.stringMatching(/is at the step: .*open the sandbox .*, admit the turn 5\.\d s/),
  };
  expect(jsonLines(ran).find(({ type }) => type === "item.completed")).toMatchObject({
    item: { type: "error", ...told },
  });
  expect(JSON.parse(await readFile(result, "utf8"))).toMatchObject({ notices: [told] });
  const shown = await run(["threads", "show", threadOf(ran)], { world: mock.world });
  expect(shown.stdout).toContain("warning start.slow: the start has taken");
});
