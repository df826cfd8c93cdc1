import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run, start, type Ran } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, threadOf, type MockWorld } from "../../test/mock-model.ts";

async function otherFolder({ world }: MockWorld): Promise<string> {
  const other = path.join(world.root, "other");
  await mkdir(path.join(other, ".git"), { recursive: true });
  await writeFile(path.join(other, ".git/HEAD"), "ref: refs/heads/main\n");
  return realpath(other);
}

const WRITE = { calls: [{ tool: "exec_command", args: { cmd: "pwd > here.txt; echo x > ../workspace/too.txt" } }] };

interface Told {
  readonly body: Readonly<Record<string, unknown>>;
}

async function eventsOf(mock: MockWorld, thread: string): Promise<readonly Told[]> {
  const shown = await run(["threads", "show", thread, "--json"], { world: mock.world });
  return shown.stdout
    .trimEnd()
    .split("\n")
    .map((line): Told => JSON.parse(line));
}

test.each([
  ["with -C", (other: string) => ({ flags: ["-C", other], options: {} })],
  ["started there", (other: string) => ({ flags: [], options: { cwd: other } })],
])("a thread that is resumed in another folder, %s, moves there with its walls, on record", async (_, how) => {
  await using mock = await openMockWorld({
    respond: ({ answers }) => [{ text: "one" }, WRITE, { text: "two" }][answers] ?? { text: "more" },
  });
  const other = await otherFolder(mock);
  const id = threadOf(await mock.exec(["--json", "first"]));
  const { flags, options } = how(other);
  const moved = await mock.exec(["--json", "-s", "workspace-write", ...flags, "resume", id, "go on"], options);
  expect(moved).toMatchObject({ code: 0, stderr: expect.stringContaining(`the thread continues in ${other}`) });
  expect(threadOf(moved)).toBe(id);
  expect(await readFile(path.join(other, "here.txt"), "utf8")).toBe(`${other}\n`);
  // The old folder is outside now.
  await expect(readFile(path.join(mock.world.workspace, "too.txt"))).rejects.toMatchObject({ code: "ENOENT" });
  expect(mock.lastRequest()).toContain(other);

  const events = await eventsOf(mock, id);
  const types = events.map(({ body }) => body["type"]);
  const at = types.indexOf("thread.moved");
  expect(events[at]?.body).toEqual({ type: "thread.moved", v: 1, workspace: other });
  expect(types[at + 1]).toBe("turn.admitted");
  expect((await run(["threads", "show", id], { world: mock.world })).stdout).toMatch(
    new RegExp(`thread\\.moved user:owner +${other}`),
  );
  const listed = await run(["threads", "list", "-C", other], { world: mock.world });
  expect(listed.stdout).toContain(id);
  expect((await run(["threads", "list", "--json"], { world: mock.world })).stdout).not.toContain(id);
  expect((await run(["verify"], { world: mock.world })).code).toBe(0);

  // It is the last one there, and going on there moves nothing.
  expect(threadOf(await mock.exec(["--json", "resume", "--last", "again"], { cwd: other }))).toBe(id);
  const later = await eventsOf(mock, id);
  expect(later.filter(({ body }) => body["type"] === "thread.moved")).toHaveLength(1);
});

test("a fork works where it is made; its parent stays where it was", async () => {
  await using mock = await openMockWorld({
    respond: ({ answers }) => [{ text: "one" }, WRITE, { text: "two" }][answers] ?? { text: "more" },
  });
  const other = await otherFolder(mock);
  const parent = threadOf(await mock.exec(["--json", "first"]));
  const fork = await mock.exec(["--json", "-s", "workspace-write", "fork", parent, "go on"], { cwd: other });
  expect(fork).toMatchObject({ code: 0 });
  expect(await readFile(path.join(other, "here.txt"), "utf8")).toBe(`${other}\n`);
  expect((await run(["threads", "list"], { world: mock.world })).stdout).toContain(parent);
});

test("an ephemeral thread whose run was killed is deleted by the next start", async () => {
  await using mock = await openMockWorld({ faults: [{ kind: "stall", at: "mid-delta" }], script: [{ text: "words" }] });
  await using running = start(["exec", "--json", "--ephemeral", "secret words"], { world: mock.world, env: MOCK_KEY });
  await mock.server.arrived(0);
  await running.sees("turn.started");
  running.child.kill("SIGKILL");
  const killed = await running.ended;
  const all = (): Promise<Ran> => run(["threads", "list", "--all", "--json"], { world: mock.world });
  expect((await all()).stdout).toContain(threadOf(killed));
  const next = await mock.exec(["--json", "next"]);
  expect(next).toMatchObject({ code: 0 });
  expect((await all()).stdout).not.toContain(threadOf(killed));
  expect((await all()).stdout).toContain(threadOf(next));
  expect(await mock.exec(["--json", "resume", threadOf(killed), "go"])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no rollout found for thread id .*was deleted/),
  });
  expect((await run(["verify"], { world: mock.world })).code).toBe(0);
});

test("an ephemeral thread of a run that lives is left alone", async () => {
  await using mock = await openMockWorld({
    faults: ({ body }) => (JSON.stringify(body).includes("slow one") ? { kind: "stall", at: "mid-delta" } : undefined),
    script: [{ text: "words" }],
  });
  await using running = start(["exec", "--json", "--ephemeral", "slow one"], { world: mock.world, env: MOCK_KEY });
  await mock.server.arrived(0);
  expect(await mock.exec(["quick one"])).toMatchObject({ code: 0 });
  running.child.kill("SIGINT");
  const ended = await running.ended;
  expect(jsonLines(ended).at(-1)).toMatchObject({ type: "turn.failed", status: "interrupted" });
  const list = await run(["threads", "list", "--all", "--json"], { world: mock.world });
  expect(list.stdout).not.toContain(threadOf(ended));
});
