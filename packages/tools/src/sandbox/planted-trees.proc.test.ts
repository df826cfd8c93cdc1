/**
 * Random hostile agents, several runs on one workspace, then the owner's git in every repository it finds and a comparison of
 * all protected paths. A few trees here; HEDDLE_E2E_FULL=1 is two thousand, HEDDLE_E2E_SEED=n begins elsewhere.
 */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeTemplate, runTree } from "../../test/planted-trees.ts";
import { findHostTool } from "./host-tools.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const COUNT = isFull ? 1000 : 2;
/** A test of its own for so many, so that a long run is seen to go on. */
const IN_A_TEST = 25;
const SEED = Number(process.env["HEDDLE_E2E_SEED"] ?? 1);
const TREE_MS = 30_000;

let template: string;

beforeAll(() => {
  template = makeTemplate();
});

afterAll(() => {
  spawnSync("rm", ["-rf", template]);
});

for (const backend of ["namespaces", "bwrap"] as const) {
  const isThere = backend === "namespaces" || findHostTool("bwrap") !== undefined;
  for (let from = SEED; from < SEED + COUNT; from += IN_A_TEST) {
    const count = Math.min(IN_A_TEST, SEED + COUNT - from);
    test.runIf(isThere)(
      `12.2: nothing that is planted is run or left by ${backend}, ${count} trees from seed ${from}${isThere ? "" : " (not installed)"}`,
      async () => {
        for (let seed = from; seed < from + count; seed += 1) {
          const { escapes } = await runTree(seed, { backend, template });
          expect(escapes, `seed ${seed}`).toEqual([]);
        }
      },
      count * TREE_MS,
    );
  }
}

test(
  "12.2: without a guard the same agents get through, so the judge can tell the difference",
  async () => {
    const { escapes } = await runTree(3, { backend: "none", template });
    expect(escapes.filter((escape) => escape.startsWith("ran: ")).length).toBeGreaterThan(0);
    expect(escapes.filter((escape) => escape.startsWith("left: ")).length).toBeGreaterThan(0);
  },
  TREE_MS,
);
