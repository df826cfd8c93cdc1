/** Contests from their events to the picked work in the workspace, with real contestants in real sandboxes. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@heddle/protocol";
import type { ContestRow, TaskSpecInput } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { collectWorktrees } from "../worktree/collect-worktrees.ts";
import { answers, contest, contestants, DONE, LIES } from "../../test/contest-world.ts";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

function facts(rows: readonly ContestRow[] = []) {
  return rows.map(({ name, isVerified, isPicked, why }) => [name, isVerified, isPicked, why]);
}

async function childrenOf(t: TestHarness, id: string): Promise<readonly TaskRecord[]> {
  return (await t.tasks.page({ parentId: id, limit: 50 })).toReversed();
}

const answerIn = (t: TestHarness): string => readFileSync(join(t.workspace, "answer.txt"), "utf8");
const isWaiting = ({ wait, holder }: TaskRecord): boolean => wait?.cause === "contest" && holder === undefined;

test("of a liar, a cheat and an honest agent the honest one is picked, and only its work comes to the workspace", async () => {
  await using t = await openTestHarness({
    providers: contestants({
      liar: LIES,
      cheat: [{ calls: [shell("echo 'exit 0' > check.sh; echo 41 > answer.txt")] }, ...LIES],
      honest: answers("echo 42 > answer.txt; echo note > other.txt"),
    }),
  });
  writeFileSync(join(t.workspace, "check.sh"), 'test "$(cat answer.txt)" = 42\n');
  const checks: TaskSpecInput["checks"] = [{ kind: "command", name: "check", run: "sh check.sh" }];
  const { id } = await t.add(contest(["liar", "cheat", "honest"], { pick: "best", order: ["time"], checks }));
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", contest: { picked: { number: 3 }, hasEnded: true } });
  const refuted = /^paused \(nudges\): after 1 nudges: check: it ended with /;
  expect(facts(task?.contest?.rows)).toEqual([
    ["liar", false, false, expect.stringMatching(refuted)],
    ["cheat", false, false, expect.stringMatching(refuted)],
    ["honest", true, true, "the only one that was verified"],
  ]);
  expect(task?.contest?.rows?.[2]).toMatchObject({ size: { files: 1, added: 1, removed: 0 }, turns: 1, rank: 1 });
  expect(answerIn(t)).toBe("42\n");
  expect(existsSync(join(t.workspace, "other.txt"))).toBe(false);
  // Those that stopped by themselves are over with the contest.
  expect((await childrenOf(t, id)).map(({ state }) => state)).toEqual(["cancelled", "cancelled", "verified"]);
  const types = (await t.events(id)).map(({ body }) => body.type).filter((type) => type !== "task.checking");
  expect(types).toEqual([
    "task.created",
    "task.taken",
    "task.prepared",
    "task.contest-opened",
    "task.waited",
    "task.woken",
    "task.taken",
    "task.contest-picked",
    "task.claimed",
    "task.checked",
    "task.contest-ended",
    "task.verified",
  ]);
  expect(await t.tasks.undo(id, { signal: AbortSignal.timeout(30_000) })).toMatchObject({ count: 1 });
  expect(existsSync(join(t.workspace, "answer.txt"))).toBe(false);
});

test("first-verified cancels the others, whose turns end and are counted; one slot is enough for a contest", async () => {
  const slow = answers("echo 42 > answer.txt", 500_000);
  await using t = await openTestHarness({
    providers: contestants({ slow, quick: answers("echo 42 > answer.txt", 300) }),
    concurrency: 2,
  });
  const { id } = await t.add(contest(["slow", "quick"]));
  await t.work();
  const [task] = await t.settled(id);
  expect(facts(task?.contest?.rows)).toEqual([
    ["slow", false, false, "cancelled: the contest picked contestant 2"],
    ["quick", true, true, "the first that was verified"],
  ]);
  const [first] = await childrenOf(t, id);
  expect(first).toMatchObject({ state: "cancelled", spent: { turns: 1 } });
  expect(first).not.toHaveProperty("openPrompt");
  expect(task?.contest?.rows?.[0]).toMatchObject({ turns: 1, state: "cancelled", isCostPartial: false });
  const open = await t.heddle.journal.threads.lastTurn(first?.threadId ?? "");
  expect(open?.status).toBe("interrupted");
});

test("with a single slot the contest waits without one, and its contestants run one after the other", async () => {
  await using t = await openTestHarness({
    providers: contestants({ liar: LIES, one: answers("echo 42 > answer.txt") }),
    concurrency: 1,
  });
  const { id } = await t.add(contest(["liar", "one"]));
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "verified", contest: { picked: { number: 2 } } }]);
});

test("best by a score picks the highest; a score that breaks ranks last and never picks", async () => {
  const score = 'n=$(sed -n 2p answer.txt); test "$n" != broken || exit 3; echo "score:"; echo "$n"';
  const scripts = {
    low: answers("printf '42\\n1.5\\n' > answer.txt"),
    high: answers("printf '42\\n20\\n' > answer.txt"),
    broken: answers("printf '42\\nbroken\\n' > answer.txt"),
    words: answers("printf '42\\nplenty\\n' > answer.txt"),
  };
  await using t = await openTestHarness({ providers: contestants(scripts) });
  const { id } = await t.add(contest(Object.keys(scripts), { pick: "best", order: ["score"], score: { run: score } }));
  const { id: none } = await t.add(contest(["broken", "words"], { name: "none", pick: "best", score: { run: score } }));
  await t.work();
  const [task, nobody] = await t.settled(id, none);
  expect(task?.contest?.rows?.map(({ name, rank, score: value }) => [name, rank, value])).toEqual([
    ["low", 2, 1.5],
    ["high", 1, 20],
    ["broken", 3, undefined],
    ["words", 4, undefined],
  ]);
  expect(task?.contest?.rows?.map(({ why }) => why).slice(2)).toEqual([
    "verified, but its score could not be taken: it ended with 3",
    'verified, but its score could not be taken: its last line is not a number: "plenty"',
  ]);
  expect(answerIn(t)).toBe("42\n20\n");
  expect(nobody).toMatchObject({ state: "failed", reason: "no verified contestant could be scored" });
});

test("two that do the same are told apart by the order of the spec", async () => {
  const same = answers("echo 42 > answer.txt");
  await using t = await openTestHarness({ providers: contestants({ b: same, a: same }) });
  const { id } = await t.add(contest(["b", "a"], { pick: "best", order: ["lines", "cost"] }));
  await t.work();
  const [task] = await t.settled(id);
  expect(facts(task?.contest?.rows)).toEqual([
    ["b", true, true, "the best of 2 verified by lines, then cost"],
    ["a", true, false, "verified, rank 2 by lines, then cost"],
  ]);
});

test("where nobody is verified nothing comes to the workspace; a retry is another contest with contestants of its own", async () => {
  await using t = await openTestHarness({ providers: contestants({ liar: LIES, other: LIES }) });
  const { id } = await t.add(contest(["liar", "other"]));
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({
    state: "failed",
    failure: { code: "task.rejected", message: "none of the 2 contestants is verified" },
    contest: { generation: 1, hasEnded: true },
  });
  expect(facts(task?.contest?.rows).map((row) => row.slice(0, 3))).toEqual([
    ["liar", false, false],
    ["other", false, false],
  ]);
  expect(existsSync(join(t.workspace, "answer.txt"))).toBe(false);
  await t.tasks.retry(id);
  const again = await t.until(id, ({ state, contest: now }) => state === "failed" && now?.generation === 2);
  const names = (await childrenOf(t, id)).map(({ id: child }) => child);
  expect(new Set(names).size).toBe(4);
  expect(again.contest?.contestants.map(({ taskId }) => taskId)).toEqual(names.slice(2));
});

test("what happens to a contest happens to its contestants: paused, resumed, cancelled and deleted with it", async () => {
  const slow = answers("echo 42 > answer.txt", 400_000);
  await using t = await openTestHarness({ providers: contestants({ slow, idle: slow }) });
  const { id } = await t.add(contest(["slow", "idle"]));
  await t.work();
  await t.until(id, isWaiting);
  const states = async (): Promise<readonly string[]> => (await childrenOf(t, id)).map(({ state }) => state);
  const [first, second] = await childrenOf(t, id);
  for (const { id: child } of [first, second].filter((one) => one !== undefined))
    await t.until(child, ({ openPrompt }) => openPrompt !== undefined);
  await t.tasks.pause(second?.id ?? "", "only this one");
  await t.tasks.pause(id);
  expect(await states()).toEqual(["paused", "paused"]);
  await t.tasks.resume(id);
  expect((await t.heddle.journal.tasks.get(second?.id ?? ""))?.reason).toBe("only this one");
  await t.until(first?.id ?? "", ({ state }) => state === "running");
  await t.tasks.cancel(id);
  expect(await states()).toEqual(["cancelled", "cancelled"]);
  await t.tasks.remove(id);
  expect(await states()).toEqual([]);
  expect(await t.heddle.journal.tasks.get(id)).toBeUndefined();
});

test("a contest whose work cannot come, because the workspace has changed meanwhile, is put to the owner and goes on", async () => {
  await using t = await openTestHarness({
    providers: contestants({ one: answers("echo 42 > answer.txt", 300), liar: LIES }),
  });
  const { id } = await t.add(contest(["one", "liar"]));
  await t.work();
  await t.until(id, isWaiting);
  writeFileSync(join(t.workspace, "answer.txt"), "of the owner\n");
  const paused = await t.until(id, ({ state }) => state === "paused");
  expect(paused).toMatchObject({ contest: { picked: { number: 1 }, hasEnded: false } });
  expect(answerIn(t)).toBe("of the owner\n");
  execFileSync("rm", [join(t.workspace, "answer.txt")]);
  await t.tasks.resume(id);
  expect(await t.until(id, ({ state }) => state === "verified")).toMatchObject({ contest: { hasEnded: true } });
  expect(answerIn(t)).toBe("42\n");
});

test("in worktrees verified work of losers stays as a branch, and the picked work is merged as the contest says", async () => {
  await using t = await openTestHarness({
    providers: contestants({
      long: answers("printf '42\\nmore\\n' > answer.txt"),
      short: answers("echo 42 > answer.txt"),
    }),
  });
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
      cwd: t.workspace,
      encoding: "utf8",
    });
  writeFileSync(join(t.workspace, "README.md"), "read\n");
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "begin");
  const worktree = { merge: "commit" } as const;
  const { id } = await t.add(contest(["long", "short"], { pick: "best", worktree }));
  await t.work();
  const [task] = await t.settled(id);
  expect(task).toMatchObject({ state: "verified", contest: { picked: { number: 2 } }, merged: { how: "commit" } });
  const branch = task?.contest?.rows?.[0]?.branch ?? "";
  expect(git("show", `${branch}:answer.txt`)).toBe("42\nmore\n");
  expect(git("show", "HEAD:answer.txt")).toBe("42\n");
  expect(answerIn(t)).toBe("42\n");
  git("rm", "-q", "answer.txt");
  git("commit", "-qm", "once more");
  const { id: quiet } = await t.add(contest(["long", "short"], { name: "q", pick: "best", keep: "winner", worktree }));
  const [second] = await t.settled(quiet);
  expect(second?.contest?.rows?.map(({ isVerified }) => isVerified)).toEqual([true, true]);
  expect(git("branch", "--list", "heddle/q-*")).toBe("");
});

test.each([
  ["verified", ["1 kept", "2 kept", "3 removed"]],
  ["all", ["1 kept", "2 kept", "3 kept"]],
  ["winner", ["1 kept", "2 removed", "3 removed"]],
  ["none", ["1 removed", "2 removed", "3 removed"]],
] as const)("trees of contestants stay as the contest says: keep: %s", async (keep, expected) => {
  const right = answers("echo 42 > answer.txt");
  await using t = await openTestHarness({ providers: contestants({ a: right, b: right, liar: LIES }) });
  const { id } = await t.add(contest(["a", "b", "liar"], { pick: "best", order: ["lines"], keep }));
  const before = {
    journal: t.heddle.journal,
    home: t.home,
    olderThanMs: 0,
    isDryRun: false,
    now: () => Date.now() + 1,
  };
  await t.work();
  await t.settled(id);
  const found = await collectWorktrees({ ...before, signal: AbortSignal.timeout(30_000) });
  const numbers = new Map((await childrenOf(t, id)).map((child) => [child.id, child.contestant]));
  const told = found.flatMap(({ taskId, outcome }) => {
    const number = numbers.get(taskId);
    return number === undefined ? [] : [`${number} ${outcome}`];
  });
  expect(told.toSorted((a, b) => a.localeCompare(b))).toEqual(expected);
});

test("a contest in which every contestant stopped with a question does not hang", async () => {
  const asks = [{ text: "TASK BLOCKED: which one?" }, ...LIES];
  await using t = await openTestHarness({ providers: contestants({ a: asks, b: [DONE, ...LIES] }) });
  const { id } = await t.add(contest(["a", "b"]));
  await t.work();
  expect(await t.settled(id)).toMatchObject([{ state: "failed" }]);
});

test("each time of a schedule is a contest of its own, with contestants of its own", async () => {
  let time = Date.now();
  await using t = await openTestHarness({
    providers: contestants({ liar: LIES, one: answers("echo 42 > answer.txt") }),
    now: () => time,
  });
  const parent = await t.add(contest(["liar", "one"], { schedule: { everyMs: 3_600_000 }, pick: "best" }));
  expect(parent).toMatchObject({ state: "waiting", wait: { cause: "schedule" } });
  const first = parent.nextAt ?? 0;
  await t.work();
  time = first;
  // Any task that is added wakes the harness.
  const knock = await t.add({ name: "knock", workspace: t.folder, schedule: { at: "2999-01-01" } });
  await t.until(parent.id, ({ nextAt }) => nextAt !== undefined && nextAt > first);
  await t.tasks.cancel(knock.id);
  const [child, ...more] = await childrenOf(t, parent.id);
  expect(more).toEqual([]);
  expect(await t.settled(child?.id ?? "")).toMatchObject([
    { state: "verified", occurrence: first, contest: { generation: 1, picked: { number: 2 } } },
  ]);
  expect((await childrenOf(t, child?.id ?? "")).map(({ contestant }) => contestant)).toEqual([1, 2]);
  expect(answerIn(t)).toBe("42\n");
});
