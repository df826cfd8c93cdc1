/** F06, the part about descriptors: a process that may open only a few of them. */
import { expect, test } from "vitest";
import { openWorld, run } from "./world.ts";

const ENOUGH = 48;

/** What the tests were started with must not count, nor lie above the limit. */
const CLOSE_INHERITED = 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done';

// Node itself needs about twenty. Each step from there on runs out of them somewhere else.
test.each([22, 24, 26, 28, 30, 32, 34, 35, 36, 37, 38, 39, 40, 48, 64])(
  "F06 with %i descriptors a run ends by itself, typed or completed, and the record is whole",
  async (limit) => {
    await using world = await openWorld();
    const call = { tool: "bash", args: { command: "echo hi" } };
    const script = await world.file("script.json", JSON.stringify([{ calls: [call] }, { text: "hi" }]));
    // The bundle is built and the store made before descriptors are scarce.
    expect((await run(["exec", "--script", script, "go"], { world })).code).toBe(0);
    const wrapper = ["bash", "-c", `${CLOSE_INHERITED}; ulimit -n ${limit} && exec "$@"`, "bash"];
    const ran = await run(["exec", "--script", script, "go"], { world, wrapper });
    expect(limit < ENOUGH ? [0, 8] : [0], ran.stderr).toContain(ran.code);
    expect(ran.stderr).not.toMatch(/^(?:\| )? {4}at /m);
    expect((await run(["verify"], { world })).code).toBe(0);
  },
);
