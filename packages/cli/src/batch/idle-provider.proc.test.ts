/** Silence of a model, and slowness that is none: `--idle-timeout` counts every byte that came. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type Fault } from "@heddle/models/testing";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { KEY, pointAt } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

async function resultOf(fault: Fault, ...limits: readonly string[]) {
  await using world = await openWorld();
  await using server = await startModelServer({ respond: () => ({ text: "done" }), faults: [fault] });
  await pointAt(world, server.url);
  const result = path.join(world.root, "result.json");
  const ran = await run(["exec", "--json", "--result-json", result, ...limits, "go"], { world, env: KEY });
  const [request] = server.requests;
  // Nothing is left waiting for an answer, and nothing was asked again.
  await request?.closed;
  expect(server.requests).toHaveLength(1);
  return { ran, result: RunResult.parse(JSON.parse(await readFile(result, "utf8"))) };
}

test.each(["before-headers", "after-headers", "mid-delta", "after-last-delta"] as const)(
  "15.6: a model that falls silent %s ends the run with code 124, and the limit is named",
  async (at) => {
    const { ran, result } = await resultOf({ kind: "stall", at }, "--idle-timeout", "1");
    expect(ran.code).toBe(124);
    expect(result).toMatchObject({
      exit_code: 124,
      status: "failed",
      reason: "turn.timeout",
      message: "nothing has happened for 1 s",
    });
  },
);

test("15.6: a byte now and then is no silence: only the time limit ends a model that never comes to its end", async () => {
  const limits = ["--idle-timeout", "3", "--timeout", "7"];
  const kinds = ["drip", "comments"] as const;
  for (const { ran, result } of await Promise.all(kinds.map((kind) => resultOf({ kind, everyMs: 200 }, ...limits)))) {
    expect(ran.code).toBe(124);
    expect(result).toMatchObject({ reason: "turn.timeout", message: "the time limit of 7 s is over" });
  }
});

test("15.6: a byte that comes later than the limit is too late", async () => {
  const { ran, result } = await resultOf({ kind: "drip", everyMs: 30_000 }, "--idle-timeout", "1");
  expect(ran.code).toBe(124);
  expect(result).toMatchObject({ message: "nothing has happened for 1 s" });
});
