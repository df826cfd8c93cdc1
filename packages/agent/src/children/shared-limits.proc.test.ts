/** The limits of an envelope hold for a thread together with those that it has started. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, openChildWorld, settled, type ChildWorld, type Scripts } from "../../test/child-world.ts";

async function openLimited(limits: string, scripts: Scripts): Promise<ChildWorld> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-shared-"));
  await mkdir(join(folder, "home", "envelopes"), { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "home", "envelopes", "few.yaml"), `extends: edit\nlimits: { ${limits} }\n`);
  const world = await openChildWorld(scripts, { folder, settings: { envelope: "few" } });
  return {
    ...world,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const spawn = (message: string) => call("spawn_agent", { message });
const waitAll = (ids: readonly string[]) => call("wait_agent", { targets: ids });
const waitLast = (ids: readonly string[]) => call("wait_agent", { targets: ids.slice(-1) });
const run = (cmd: string) => call("exec_command", { cmd });
const write = (file: string, bytes: number) => ({
  calls: [
    {
      tool: "apply_patch",
      args: `*** Begin Patch\n*** Add File: ${file}\n+${"x".repeat(bytes - 1)}\n*** End Patch\n`,
    },
  ],
});

/** What the calls of each thread came to: the parent's first. */
async function outcomes({ t }: ChildWorld, threadId: string): Promise<string[][]> {
  const children = await t.heddle.journal.threads.childrenOf(threadId, { limit: 9 });
  const all = [threadId, ...children.map(({ id }) => id)];
  return Promise.all(
    all.map(async (id) =>
      settled(await t.events(id)).map(({ tool, outcome, failure }) => `${tool} ${failure?.code ?? outcome}`),
    ),
  );
}

test("calls of a child count for its parent, in the turn and in the turns after it", async () => {
  await using world = await openLimited("calls: 5", {
    parent: [spawn("child"), waitAll, run("true"), { text: "one" }, run("true"), { text: "two" }],
    child: [run("true"), run("true"), run("true"), { text: "done" }],
  });
  const turn = await world.t.start("parent");
  await turn.done;
  // Two of the parent and three of the child are five.
  expect(await outcomes(world, turn.threadId)).toEqual([
    ["spawn_agent ok", "wait_agent ok", "exec_command envelope.limit-reached"],
    ["exec_command ok", "exec_command ok", "exec_command ok"],
  ]);
  await (
    await world.t.start("again", { thread: turn.threadId })
  ).done;
  expect((await outcomes(world, turn.threadId))[0]?.at(-1)).toBe("exec_command envelope.limit-reached");
});

test("bytes that two children write come out of the same limit", async () => {
  await using world = await openLimited("bytesWritten: 100", {
    parent: [spawn("first"), waitAll, spawn("second"), waitLast, { text: "done" }],
    first: [write("one", 60), { text: "done" }],
    second: [write("two", 60), write("three", 40), { text: "done" }],
  });
  const turn = await world.t.start("parent");
  await turn.done;
  expect((await outcomes(world, turn.threadId)).slice(1)).toEqual([
    ["apply_patch ok"],
    ["apply_patch envelope.limit-reached", "apply_patch ok"],
  ]);
});

test("threads that children start count for the thread above them", async () => {
  await using world = await openLimited("childThreads: 2", {
    parent: [spawn("child"), waitAll, spawn("late"), { text: "done" }],
    child: [spawn("deep"), spawn("deeper"), { text: "done" }],
    deep: [{ text: "done" }],
    deeper: [{ text: "done" }],
    late: [{ text: "done" }],
  });
  const turn = await world.t.start("parent");
  await turn.done;
  expect(await outcomes(world, turn.threadId)).toEqual([
    ["spawn_agent ok", "wait_agent ok", "spawn_agent child.too-many"],
    ["spawn_agent ok", "spawn_agent child.too-many"],
  ]);
});
