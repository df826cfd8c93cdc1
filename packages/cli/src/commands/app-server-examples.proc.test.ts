import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  command,
  connectTo,
  isEndOf,
  KEY,
  pointAt,
  serveOnSocket,
  startThread,
  startTurn,
} from "../../test/app-server-client.ts";
import { LAUNCHER, openWorld, run, start } from "../../test/heddle-process.ts";

const example = (name: string): string => path.join(import.meta.dirname, "../../../../examples", name);

test("examples/app-server-client.mjs runs a turn and shows its answer", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("echo hi")] }, { text: "hello there" }] });
  await pointAt(world, model.url);
  const launcher = example("app-server-client.mjs");
  const ran = await run(["say hello"], { world, launcher, env: { ...KEY, HEDDLE: LAUNCHER } });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toMatch(/^\$ .*echo hi'?\nhello there\ncompleted \(thread [0-9a-f-]{36}\)\n$/);
});

test("examples/approve-from-second-terminal.mjs answers a question of the first terminal", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ calls: [command("touch made.txt")] }, { text: "done" }] });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using first = await connectTo(server.socket);
  await first.client.initialize();
  const threadId = await startThread(first.client, { approvalPolicy: "untrusted", sandbox: "workspace-write" });
  const turnId = await startTurn(first.client, threadId, "go");
  await first.client.note("item/commandExecution/requestApproval");
  const launcher = example("approve-from-second-terminal.mjs");
  const env = { HEDDLE_SOCKET: server.socket };
  await using second = start([threadId], { world, launcher, env, stdin: null });
  await second.sees("? run");
  second.child.stdin?.write("y\n");
  await first.client.waitFor((wire) => isEndOf(wire, turnId));
  const ran = await second.ended;
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toMatch(/^\? run .*touch made\.txt.* in .*\nanswered\nturn completed\n$/);
  await expect(stat(path.join(world.workspace, "made.txt"))).resolves.toBeDefined();
});

test.each(["app-server-client.mjs", "approve-from-second-terminal.mjs"])("examples/%s is short", (name) => {
  expect(readFileSync(example(name), "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(60);
});
