import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

test("12.11: a command that prints 3 MB of what begins like a token holds up nobody", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [{ tool: "exec_command", args: { cmd: "cat out.txt" } }] }, { text: "done" }],
  });
  await writeFile(join(t.workspace, "out.txt"), "-eyJ".repeat(3 * 256 * 1024));
  using delay = monitorEventLoopDelay({ resolution: 2 });
  delay.enable();
  const before = process.cpuUsage();
  const turn = await t.start("go");
  expect((await turn.done).body.status).toBe("completed");
  const { user, system } = process.cpuUsage(before);
  // 146 s, when each beginning was followed to the end of its line.
  expect((user + system) / 1e6).toBeLessThan(5);
  expect(delay.max / 1e6).toBeLessThan(500);
}, 60_000);
