/** Agents and messages through the command line. */
import path from "node:path";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run } from "../../test/heddle-process.ts";

test("examples/two-agents: what one finds the other reads as a quote, and a message changes nothing", async () => {
  await using world = await openWorld();
  const launcher = path.join(import.meta.dirname, "../../../../examples/two-agents/run.mjs");
  const ran = await run([], { world, launcher, env: { HEDDLE: LAUNCHER } });
  expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining("and wrote nothing")]);
});

test("heddle agents, tell and ask say what is wrong, and make nothing where nothing is", async () => {
  await using world = await openWorld();
  const refused = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await run(args, { world });
    return `${code} ${stderr}`;
  };
  expect(await run(["agents"], { world })).toMatchObject({ code: 0, stdout: expect.stringContaining("no agents yet") });
  expect(await refused("agents", "lst")).toMatch(/^2 .*list/);
  expect(await refused("agents", "wake", "scout", "maybe")).toMatch(/^2 .*on\|off\|default/);
  expect(await refused("tell", "scout")).toMatch(/^2 .*TEXT/);
  expect(await refused("tell", "scout", "hello")).toMatch(/^2 .*there is no agent scout/);
  expect(await refused("ask", "scout", "hello", "--timeout", "0")).toMatch(/^2 .*--timeout/);
});
