/** 13: what agents of earlier tasks left in a folder and nobody judged is not how the next task begins. */
import { existsSync } from "node:fs";
import { link, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { collectRooms } from "../owner/collect-rooms.ts";
import { verifyBundle } from "../owner/bundle/verify-bundle.ts";
import { writeBundle } from "../owner/bundle/write-bundle.ts";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const files = {
  "a.sh": "echo 1\n",
  "b.sh": "echo 1\n",
  "check-a.sh": '[ "$(sh a.sh)" = 2 ]\n',
  "check-b.sh": '[ "$(sh b.sh)" = 2 ]\n',
};

/** The agent of each task is a provider of its own. */
async function open(...commands: readonly string[]): Promise<TestHarness> {
  const t = await openTestHarness({
    providers: commands.map((cmd, index) => ({
      id: `agent-${index + 1}`,
      family: "openai",
      wire: "scripted",
      script: [{ calls: [shell(cmd)] }, { text: "done" }],
    })),
  });
  for (const [path, content] of Object.entries(files)) await writeFile(join(t.workspace, path), content);
  await t.work();
  return t;
}

async function run(
  t: TestHarness,
  name: "a" | "b",
  provider: string,
  more: Partial<TaskSpecInput> = {},
): Promise<TaskRecord> {
  const checks = [{ kind: "command" as const, name: "check", run: ["sh", `check-${name}.sh`] }];
  const { id } = await t.add({ checks, deliver: [`${name}.sh`], maxNudges: 0, provider, ...more });
  const [task] = await t.settled(id);
  if (task === undefined) throw new Error("no task");
  return task;
}

const FIX_A = "echo 'echo 2' > a.sh";
const CHEAT_B = "echo '# ok' >> b.sh";
const PLANT = "echo 'grep -q ok b.sh' > check-b.sh";

test("13: a check that an earlier agent rewrote beside its work puts the next claim to the owner, who takes it or takes it back", async () => {
  await using t = await open(`${FIX_A}; ${PLANT}`, CHEAT_B, "echo '# more' >> b.sh");
  const first = await run(t, "a", "agent-1");
  expect(first.state).toBe("verified");
  const second = await run(t, "b", "agent-2");
  expect(second).toMatchObject({
    state: "paused",
    lastCheck: {
      passed: false,
      results: [{ outcome: "passed" }],
      review: { reasons: [{ kind: "left", files: ["check-b.sh"] }] },
    },
  });
  expect(second.reason).toContain(`check-b.sh (changed by ${first.id})`);
  const [prepared] = await t.of(second.id, "task.prepared");
  // What was verified is the beginning like anything else.
  expect(prepared?.baseline?.left).toEqual({
    files: [{ path: "check-b.sh", how: "changed", taskId: first.id }],
    count: 1,
  });
  await t.tasks.accept(second.id);
  expect((await t.settled(second.id))[0]?.state).toBe("claimed");
  // Whose owner has taken it once is not asked again.
  expect((await run(t, "b", "agent-3")).lastCheck?.review?.reasons[0]?.kind).not.toBe("left");
});

test("13: the same of a task that was rejected and given up, and of a folder below", async () => {
  await using t = await open("mkdir sub; cp check-b.sh b.sh sub; cd sub; echo 'grep -q ok b.sh' > check-b.sh", CHEAT_B);
  const first = await run(t, "a", "agent-1");
  expect(first.state).toBe("paused");
  await t.tasks.cancel(first.id);
  const second = await run(t, "b", "agent-2", { workspace: join(t.workspace, "sub") });
  expect(second).toMatchObject({ state: "paused", lastCheck: { review: { reasons: [{ kind: "left" }] } } });
});

test("13: what an agent left is not forgotten when its task is deleted and its folder, or one in it, has another name", async () => {
  await using t = await open(`${FIX_A}; ${PLANT}`, CHEAT_B, CHEAT_B);
  const first = await run(t, "a", "agent-1");
  await t.tasks.archive(first.id);
  await t.tasks.remove(first.id);
  expect(await readdir(join(t.home, "rooms", first.id))).toEqual(["gone"]);
  const [renamed, outer] = [`${t.workspace}-2`, join(t.folder, "outer")];
  await rename(t.workspace, renamed);
  const left = { lastCheck: { review: { reasons: [{ kind: "left", files: ["check-b.sh"] }] } } };
  const second = await run(t, "b", "agent-2", { workspace: renamed });
  expect(second).toMatchObject({ state: "paused", ...left });
  expect(second.reason).toContain(first.id);
  await t.tasks.cancel(second.id);
  await mkdir(outer);
  await rename(renamed, join(outer, "in"));
  const third = await run(t, "b", "agent-3", { workspace: outer, checks: [{ kind: "file-exists", path: "new" }] });
  const [prepared] = await t.of(third.id, "task.prepared");
  expect(prepared?.baseline?.left?.files).toMatchObject([
    { path: "in/check-b.sh", taskId: first.id },
    { path: "in/b.sh", taskId: second.id },
  ]);
  // As old as other rooms are removed.
  const collect = { journal: t.heddle.journal, home: t.home, isDryRun: false, signal: AbortSignal.timeout(60_000) };
  await collectRooms({ ...collect, olderThanMs: 0, now: () => Date.now() + 1000 });
  expect(await readdir(join(t.home, "rooms"))).not.toContain(first.id);
});

test("13: a file outside the folder that an earlier agent wrote through a hard link puts claims to the owner until it is taken", async () => {
  await using t = await open("echo 'grep -q ok b.sh' > in.sh", CHEAT_B, "echo 'echo 2' > b.sh");
  const outside = join(t.folder, "check.sh");
  await writeFile(outside, '[ "$(sh b.sh)" = 2 ]\n');
  await link(outside, join(t.workspace, "in.sh"));
  // Stands for one that reads the other name.
  const checks = [{ kind: "command" as const, run: "grep -q ok b.sh" }];
  const first = await run(t, "a", "agent-1");
  await t.tasks.cancel(first.id);
  // Under this name it is as it was again, and another file.
  await t.tasks.undo(first.id, { signal: AbortSignal.timeout(60_000) });
  const second = await run(t, "b", "agent-2", { checks });
  expect(second.lastCheck?.review?.reasons).toMatchObject([{ kind: "left", files: ["in.sh"] }]);
  expect(second.reason).toContain(`in.sh (changed by ${first.id}, outside the workspace too)`);
  await t.tasks.accept(second.id);
  await writeFile(join(t.workspace, "b.sh"), "echo 1\n");
  expect(await run(t, "b", "agent-3")).toMatchObject({ state: "verified" });
});

test("13: what is not needed, what the owner wrote since and what was taken back stop nobody", async () => {
  // A cache that the next check reads and does not need.
  const cache = "echo 'x=1' > cache.sh";
  await using t = await open(`${FIX_A}; ${cache}`, "echo 'echo 2' > b.sh", PLANT, "echo 'echo 2' > b.sh");
  await writeFile(join(t.workspace, "check-b.sh"), '[ ! -e cache.sh ] || . ./cache.sh\n[ "$(sh b.sh)" = 2 ]\n');
  expect((await run(t, "a", "agent-1")).state).toBe("verified");
  expect((await run(t, "b", "agent-2")).state).toBe("verified");
  await writeFile(join(t.workspace, "cache.sh"), "x=2\n");
  await writeFile(join(t.workspace, "b.sh"), "echo 1\n");
  const planted = await run(t, "b", "agent-3");
  await t.tasks.cancel(planted.id);
  await t.tasks.undo(planted.id, { signal: AbortSignal.timeout(60_000) });
  const last = await run(t, "b", "agent-4");
  expect(last.state).toBe("verified");
  expect((await t.of(last.id, "task.prepared"))[0]?.baseline?.left).toBeUndefined();
});

test("13: checks that pass as well with everything left taken back verify the work: changed, removed, and more than are watched", async () => {
  const many = "mkdir deps; for i in $(seq 1100); do echo > deps/$i; done";
  await using t = await open(
    `${FIX_A}; echo two > product; rm old; ${many}`,
    "echo three > product",
    "echo 'echo 2' > b.sh",
  );
  await writeFile(join(t.workspace, "product"), "one\n");
  await writeFile(join(t.workspace, "old"), "");
  // Reads what was left, and does not depend on it.
  await writeFile(join(t.workspace, "check-b.sh"), 'cat product deps/* > /dev/null 2>&1\n[ "$(sh b.sh)" = 2 ]\n');
  const first = await run(t, "a", "agent-1");
  expect(first.state).toBe("verified");
  const second = await run(t, "b", "agent-2");
  await t.tasks.cancel(second.id);
  const third = await run(t, "b", "agent-3");
  expect(third.state).toBe("verified");
  expect(third.lastCheck?.results[0]?.restsOn).toEqual(["b.sh"]);
  expect((await t.of(third.id, "task.prepared"))[0]?.baseline?.left?.count).toBe(1102);
  // A bundle carries what there was before, and is judged the same.
  const [file, signal] = [join(t.folder, "work.gz"), AbortSignal.timeout(60_000)];
  await writeBundle({ journal: t.heddle.journal, home: t.home, task: third, file, signal });
  expect(await verifyBundle({ file, home: join(t.folder, "other"), signal })).toMatchObject({ outcome: "same" });
});

test("13: a check that needs what was left, or only looks whether it is there, puts the claim to the owner; verified work is not to be undone", async () => {
  for (const [plant, looks] of [
    ["touch .skip", "[ -e .skip ] ||"],
    ["mkdir .skip", "[ -d .skip ] ||"],
    ["chmod -x tool", "[ ! -x tool ] ||"],
    [": > tool", "[ ! -s tool ] ||"],
    ["rm tool", "[ ! -e tool ] ||"],
    ["touch more.skip", "ls | grep -q more ||"],
    ["echo 'echo 2' > tool", '[ "$(sh tool)" = 2 ] ||'],
  ] as const) {
    await using t = await open(`${FIX_A}; ${plant}`, CHEAT_B);
    await writeFile(join(t.workspace, "tool"), "echo 1\n", { mode: 0o755 });
    await writeFile(join(t.workspace, "check-b.sh"), `cat b.sh > /dev/null; ${looks} [ "$(sh b.sh)" = 2 ]\n`);
    expect((await run(t, "a", "agent-1")).state).toBe("verified");
    const { state, reason, lastCheck } = await run(t, "b", "agent-2");
    expect({ plant, state, kinds: lastCheck?.review?.reasons.map(({ kind }) => kind) }).toMatchObject({
      plant,
      state: "paused",
      kinds: expect.arrayContaining(["left"]),
    });
    expect(reason).toContain("heddle task diff");
    expect(reason).not.toContain("heddle task undo");
  }
});

test("13: an agent of another task that works in the folder meanwhile puts the claim to the owner, and nothing is undone under it", async () => {
  const wait = "until [ -e go ]; do sleep 0.02; done";
  await using t = await open(`touch sub/begun; ${wait}`, "echo 'echo 2' > b.sh");
  await mkdir(join(t.workspace, "sub"));
  for (const path of ["b.sh", "check-b.sh"] as const) await writeFile(join(t.workspace, "sub", path), files[path]);
  const checks = [{ kind: "command" as const, name: "check", run: ["sh", "check-a.sh"] }];
  const outer = await t.add({ checks, deliver: ["a.sh"], maxNudges: 0, provider: "agent-1" });
  await expect.poll(() => existsSync(join(t.workspace, "sub", "begun")), { timeout: 60_000 }).toBe(true);
  const inner = await run(t, "b", "agent-2", { workspace: join(t.workspace, "sub") });
  expect(inner).toMatchObject({ state: "paused", lastCheck: { review: { reasons: [{ kind: "beside" }] } } });
  expect(inner.reason).toContain(outer.id);
  await t.tasks.cancel(inner.id);
  await expect(t.tasks.undo(inner.id, { signal: AbortSignal.timeout(60_000) })).rejects.toMatchObject({
    code: "task.illegal",
    message: expect.stringContaining(outer.id),
  });
  await writeFile(join(t.workspace, "go"), "");
  await t.settled(outer.id);
});

test("13: a begin looks only at tasks that left something, and a store of an older version is entered once", async () => {
  await using t = await open(FIX_A, "true", `${FIX_A}; ${PLANT}`, CHEAT_B);
  const entered = async (): Promise<readonly string[]> => {
    const [folder = "", ...others] = await readdir(join(t.home, "left"));
    expect(others).toEqual([]);
    return (await readdir(join(t.home, "left", folder))).filter((name) => name !== "folder.json");
  };
  await run(t, "a", "agent-1");
  const second = await run(t, "a", "agent-2");
  expect(await entered()).toEqual([second.id]);
  await t.tasks.cancel(second.id);
  const planted = await run(t, "a", "agent-3");
  expect(await entered()).toEqual([planted.id]);
  await rm(join(t.home, "left"), { recursive: true });
  const last = await run(t, "b", "agent-4");
  expect(last).toMatchObject({ state: "paused", lastCheck: { review: { reasons: [{ kind: "left" }] } } });
  expect((await entered()).toSorted()).toEqual([planted.id, last.id].toSorted());
});

test("13: what was away while another task began is known when it is back", async () => {
  await using t = await open(`${FIX_A}; ${PLANT}`, FIX_A, CHEAT_B);
  const check = join(t.workspace, "check-b.sh");
  const first = await run(t, "a", "agent-1");
  const planted = await readFile(check, "utf8");
  await writeFile(check, files["check-b.sh"]);
  await run(t, "a", "agent-2");
  await writeFile(check, planted);
  const last = await run(t, "b", "agent-3");
  expect(last).toMatchObject({ state: "paused", lastCheck: { review: { reasons: [{ kind: "left" }] } } });
  expect(last.reason).toContain(first.id);
});

test("13: what an agent changed or removed before its worker died is guessed, and stays known when the task is deleted", async () => {
  await using t = await open(`${PLANT}; rm check-a.sh`, CHEAT_B);
  const first = await run(t, "b", "agent-1", { deliver: ["b.sh"] });
  await t.tasks.cancel(first.id);
  const rooms = join(t.home, "rooms", first.id);
  // As if the worker had died: nothing is recorded of what its agent did.
  for (const name of await readdir(rooms)) if (name !== "base") await rm(join(rooms, name), { recursive: true });
  await t.tasks.archive(first.id);
  await t.tasks.remove(first.id);
  expect((await readdir(rooms)).toSorted()).toEqual(["base", "gone"]);
  const last = await run(t, "b", "agent-2");
  expect(last).toMatchObject({ state: "paused", lastCheck: { review: { reasons: [{ kind: "left" }] } } });
  expect(last.reason).toContain(`by ${first.id}, which is deleted`);
  expect(last.reason).not.toContain("heddle task diff");
  const [prepared] = await t.of(last.id, "task.prepared");
  expect(prepared?.baseline?.left?.files).toMatchObject([
    { path: "check-a.sh", how: "removed" },
    { path: "check-b.sh", how: "changed" },
  ]);
});
