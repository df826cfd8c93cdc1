/** A task whose agent is a program that does not say what it uses while it works. */
import { join } from "node:path";
import type { TurnSettings } from "@heddle/protocol";
import { expect, inject, test } from "vitest";
import { openTestHarness } from "../../test/test-harness.ts";

const steps = [{ runs: "echo made > made.txt" }, { says: "Done.\nTASK COMPLETE" }];
const args = [join(inject("children"), "agent-play-in-child.mjs"), "acp", JSON.stringify(steps)];
const runners = { acp: { protocol: "acp", command: process.execPath, args, hosts: [], folders: [] } } as const;
const settings = async (): Promise<TurnSettings> => ({
  runner: "acp",
  provider: "acp",
  model: "default",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
});
const checks = [{ kind: "command", name: "made", run: "test -e made.txt" }] as const;

test("it works without the limit of tokens that nobody has named, and is refused the one that somebody has", async () => {
  await using t = await openTestHarness({ runners, settings });
  const { id } = await t.add({ checks: [...checks], deliver: ["made.txt"] });
  const limited = await t.add({ checks: [...checks], deliver: ["made.txt"], budget: { tokens: 1000 } });
  await t.work();
  const [task, refused] = await t.settled(id, limited.id);
  expect(task).toMatchObject({ state: "verified", spent: { turns: 1 } });
  expect(refused).toMatchObject({ state: "failed", spent: { turns: 0 } });
  expect(JSON.stringify(await t.events(limited.id))).toContain("cannot be limited in its tokens");
});
