/** What an undo takes back is the agent's; where that is not known, it refuses and names the files. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OWNER } from "@heddle/protocol";
import { openTestHarness, type TestHarness } from "../../test/test-harness.ts";
import { baseFolder, leftFolder, roomsOf } from "../judge/task-rooms.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import { claimFolder } from "../tree/put-back.ts";
import { writeIntent } from "../tree/put-intent.ts";
import { findUndo, undoIntent } from "../tree/put-plan.ts";
import { finishPutting } from "./finish-putting.ts";

const { signal } = new AbortController();
const HANGS = "echo a > agent.txt; sleep 300";
const waiting = (cmd: string) => ({ tool: "exec_command", args: { cmd, yield_time_ms: 30_000 } });

/** A task that is cancelled while its agent hangs in a command, having written a file. */
async function cancelled(t: TestHarness): Promise<string> {
  const { id } = await t.add({ checks: [{ kind: "file-exists", path: "done.txt" }] });
  await t.work();
  while (!existsSync(join(t.workspace, "agent.txt"))) await new Promise(setImmediate);
  await t.tasks.cancel(id);
  return id;
}

test.each([
  ["is known", false, "mine/sub/p.txt"],
  ["is not known", true, "agent.txt\nmine/sub/p.txt"],
])(
  "13: a folder that its owner moves in after a task was cancelled stays, where what the agent left %s",
  async (_how, isForgotten, files) => {
    await using t = await openTestHarness({ script: [{ calls: [waiting(HANGS)] }, { text: "done" }] });
    // Moving it renews the change time of the folder alone.
    mkdirSync(join(t.folder, "mine", "sub"), { recursive: true });
    writeFileSync(join(t.folder, "mine", "sub", "p.txt"), "precious");
    const id = await cancelled(t);
    await t.until(id, ({ openPrompt }) => openPrompt === undefined);
    expect(existsSync(leftFolder(t.home, id, 1))).toBe(true);
    if (isForgotten) rmSync(leftFolder(t.home, id, 1), { recursive: true });
    renameSync(join(t.folder, "mine"), join(t.workspace, "mine"));
    await expect(t.tasks.undo(id, { signal })).rejects.toMatchObject({ code: "task.illegal", details: { files } });
    expect(readdirSync(t.workspace)).toEqual(["agent.txt", "mine"]);
    await t.tasks.undo(id, { signal, isForced: true });
    expect(readdirSync(t.workspace)).toEqual([]);
  },
);

test("13: an undo waits until the agent of a task that was cancelled just now has ended, and needs no force", async () => {
  const cmd = `rm pipe; ${HANGS}`;
  await using t = await openTestHarness({ script: [{ calls: [waiting(cmd)] }, { text: "done" }] });
  execFileSync("mkfifo", [join(t.workspace, "pipe")]);
  const id = await cancelled(t);
  // A pipe does not come back, and is not said to.
  expect(await t.tasks.undo(id, { signal })).toMatchObject({ isDone: true, count: 1, later: [] });
  expect(readdirSync(t.workspace)).toEqual([]);
  // Once more there is nothing to take back.
  expect(await t.tasks.undo(id, { signal })).toMatchObject({ isDone: true, count: 0, later: [] });
});

/** Work that waits for its owner to accept it. */
async function openReview(): Promise<TestHarness & { readonly id: string }> {
  const cmd = "echo new > a.txt";
  const t = await openTestHarness({ script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "done" }] });
  writeFileSync(join(t.workspace, "a.txt"), "old\n");
  const { id } = await t.add({ checks: [{ kind: "command", run: "grep new a.txt" }] });
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "paused", lastCheck: { review: {} } }]);
  return { ...t, id };
}

test("13: of an undo and an acceptance at once one happens, and the other says why it does not", async () => {
  await using t = await openReview();
  const held = await claimFolder(t.workspace, { dir: roomsOf(t.home, "other"), signal });
  const both = Promise.allSettled([t.tasks.undo(t.id, { signal }), t.tasks.accept(t.id)]);
  await held[Symbol.asyncDispose]();
  const [undo, accept] = await both;
  expect([undo.status, accept.status].toSorted()).toEqual(["fulfilled", "rejected"]);
  const isUndone = undo.status === "fulfilled";
  const refused = isUndone ? accept : undo;
  expect(refused).toMatchObject({ reason: { code: "task.illegal" } });
  const [task] = await t.settled(t.id);
  expect(task).toMatchObject(isUndone ? { state: "paused", undone: { files: 1 } } : { state: "verified" });
  expect(readFileSync(join(t.workspace, "a.txt"), "utf8")).toBe(isUndone ? "old\n" : "new\n");
});

test("13: an undo that finds its task gone on when its turn has come changes nothing", async () => {
  await using t = await openReview();
  const held = await claimFolder(t.workspace, { dir: roomsOf(t.home, "other"), signal });
  const undo = expect(t.tasks.undo(t.id, { signal })).rejects.toMatchObject({ code: "task.illegal" });
  const events = [
    { type: "task.cancelled", v: 1, reason: "r" } as const,
    { type: "task.retried", v: 1, reason: "r" } as const,
  ];
  await t.heddle.journal.append({ stream: t.id, author: OWNER, events });
  await held[Symbol.asyncDispose]();
  await undo;
  expect(await t.of(t.id, "task.undone")).toEqual([]);
  expect(readFileSync(join(t.workspace, "a.txt"), "utf8")).toBe("new\n");
});

/** As an undo leaves it that is killed when its intent is on the disk. */
async function killUndo({ home, workspace, tasks, id }: Awaited<ReturnType<typeof openReview>>): Promise<void> {
  const base = await readKeptTree(baseFolder(home, id));
  if (base === undefined) throw new Error("there is no baseline");
  const plan = await findUndo(workspace, base, { skip: [], signal });
  const { version } = await tasks.find(id);
  writeIntent(roomsOf(home, id), {
    ...(await undoIntent(plan, base, signal)),
    undoes: { files: 1, version, by: OWNER },
  });
}

test("13: an undo that another process finishes is on record, and nothing is in the way of the next one", async () => {
  await using t = await openReview();
  await killUndo(t);
  const lines: string[] = [];
  await finishPutting({ journal: t.heddle.journal, home: t.home, log: (line) => lines.push(line) });
  expect(lines).toEqual([`${t.workspace}: finished the changes that a process was writing there when it ended`]);
  expect(await t.tasks.find(t.id)).toMatchObject({ state: "paused", undone: { files: 1 } });
  await expect(t.tasks.accept(t.id)).rejects.toMatchObject({ code: "task.illegal" });
  expect(await t.tasks.undo(t.id, { signal })).toMatchObject({ isDone: true, count: 0, later: [] });
  const again = await t.tasks.undo(t.id, { signal, retry: { reason: "again" } });
  expect(again.task.state).toBe("pending");
});

test("13: who resumes a task finishes an undo first that was killed, and the record says so in this order", async () => {
  await using t = await openReview();
  await killUndo(t);
  await t.tasks.resume(t.id);
  const types = (await t.events(t.id)).map(({ body }) => body.type);
  expect(types.filter((type) => type === "task.undone" || type === "task.resumed")).toEqual([
    "task.undone",
    "task.resumed",
  ]);
});

test("13: what its owner changed after an undo was killed stays, and is named by whoever finishes it", async () => {
  await using t = await openReview();
  await killUndo(t);
  writeFileSync(join(t.workspace, "a.txt"), "mine");
  const lines: string[] = [];
  await finishPutting({ journal: t.heddle.journal, home: t.home, log: (line) => lines.push(line) });
  expect(lines).toEqual([expect.stringContaining("; a.txt changed meanwhile and was left as it is")]);
  expect(readFileSync(join(t.workspace, "a.txt"), "utf8")).toBe("mine");
});

test.each([
  ["judged", ["done.txt", "big"]],
  ["left out and not read", ["done.txt"]],
])(
  "13: a large file of the agent's is known when its work was %s, and another in its place is not",
  async (_how, deliver) => {
    const cmd = "head -c 3000000 /dev/zero > big; echo x > done.txt";
    await using t = await openTestHarness({
      script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "done" }],
    });
    writeFileSync(join(t.workspace, "big"), "small");
    const { id } = await t.add({ checks: [{ kind: "file-exists", path: "done.txt" }], deliver });
    await t.work();
    expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
    expect(await t.tasks.undo(id, { signal, isDryRun: true })).toMatchObject({ count: 2, later: [] });
    const work = readFileSync(join(t.workspace, "big"));
    writeFileSync(join(t.workspace, "big"), work.fill(1));
    await expect(t.tasks.undo(id, { signal })).rejects.toMatchObject({ details: { files: "big" } });
    await t.tasks.undo(id, { signal, isForced: true });
    expect(readFileSync(join(t.workspace, "big"), "utf8")).toBe("small");
  },
);
