import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";

const RUNS = process.env["HEDDLE_E2E_FULL"] === "1" ? 100 : 20;
/** At once; more than the machine has cores, few enough to leave each one time to start. */
const AT_ONCE = 10;

test(
  `${RUNS} runs (100 with HEDDLE_E2E_FULL=1) on one home, ${AT_ONCE} at a time, all leave a valid result and a record that verifies`,
  { timeout: 240_000 },
  async () => {
    await using world = await openWorld();
    const cwd = path.join(world.root, "plain");
    await mkdir(cwd);
    const script = await world.file(
      "script.json",
      JSON.stringify([{ calls: [{ tool: "bash", args: { command: "echo hello" } }] }, { text: "done" }]),
    );
    const results: RunResult[] = [];
    let next = 0;
    async function work(): Promise<void> {
      for (let index = next++; index < RUNS; index = next++) {
        const file = path.join(world.root, `result-${index}.json`);
        const names = ["--result-json", file, "--run-id", `run-${index}`];
        const ran = await run(["exec", "--json", "--skip-git-repo-check", "--script", script, ...names, "go"], {
          world,
          cwd,
        });
        expect(ran, ran.stderr).toMatchObject({ code: 0 });
        results.push(RunResult.parse(JSON.parse(await readFile(file, "utf8"))));
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(results).toHaveLength(RUNS);
    for (const result of results) expect(result).toMatchObject({ status: "completed", response: "done", num_turns: 2 });
    expect(new Set(results.map(({ thread_id }) => thread_id)).size).toBe(RUNS);
    expect(new Set(results.map(({ run_id }) => run_id)).size).toBe(RUNS);
    expect(await run(["verify"], { world })).toMatchObject({ code: 0 });
  },
);
