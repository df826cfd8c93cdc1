/** 13: a file that a check only looks for, and never reads, is named before anything is verified by it. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Verdict } from "./verify.ts";
import { judge } from "../../test/task-fixture.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

/** Each reads the source, and passes only where the flag lies. */
const LOOKS: readonly (readonly [string, readonly string[], boolean])[] = [
  ["sh", ["sh", "-c", "cat src.js && test -f flag"], true],
  [
    "node",
    [
      process.execPath,
      "-e",
      "const fs = require('node:fs'); fs.readFileSync('src.js'); process.exit(fs.existsSync('flag') ? 0 : 1)",
    ],
    true,
  ],
  [
    "python",
    ["python3", "-c", "import os, sys; open('src.js').read(); sys.exit(not os.path.exists('flag'))"],
    hasPython,
  ],
];

for (const [language, run, isThere] of LOOKS) {
  const verdictWith = (work: Readonly<Record<string, string>>): Promise<Verdict> =>
    judge(
      { files: { "src.js": "1\n" }, checks: [{ kind: "command", name: "works", run: [...run] }] },
      async (fixture) => {
        for (const [path, content] of Object.entries(work)) await fixture.write(path, content);
      },
    );

  test.runIf(isThere)(`13: a planted file that ${language} only looks for is named (needs ${language})`, async () => {
    for (const work of [{ flag: "" }, { flag: "", "src.js": "2\n" }]) {
      const verdict = await verdictWith(work);
      expect(verdict, JSON.stringify(work)).toMatchObject({ passed: false, results: [{ outcome: "passed" }] });
      expect(verdict.review?.reasons[0]?.files, JSON.stringify(work)).toContain("flag");
      expect(verdict.review?.deliver).toContain("flag");
    }
  });
}
