/** 13: `apply: on-verified`: the agent works in a draft, and the workspace is touched only with what was verified. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { differences, entriesOf, type Looked } from "../../test/random-trees.ts";
import { openTestHarness, shell, type TestHarness, type TestHarnessOptions } from "../../test/test-harness.ts";
import { finishPutting } from "../owner/finish-putting.ts";
import { collectWorktrees } from "./collect-worktrees.ts";

const DRAFT: Partial<TaskSpecInput> = {
  apply: "on-verified",
  checks: [{ kind: "contains", path: "done.txt", text: "x" }],
  maxNudges: 0,
};

type Script = NonNullable<TestHarnessOptions["script"]>;

const works = (command: string): Script => [{ calls: [shell(command)] }, { text: "done" }];

/** The agent waits for a file in its draft, for ten seconds at most. */
const UNTIL_GO = "i=0; while [ ! -e go ] && [ $i -lt 500 ]; do sleep 0.02; i=$((i+1)); done";

async function open(script: Script, folder?: string): Promise<TestHarness> {
  const t = await openTestHarness({ script, ...(folder === undefined ? {} : { folder }) });
  writeFileSync(join(t.workspace, "readme.txt"), "first\n");
  writeFileSync(join(t.workspace, "mine.txt"), "not committed\n");
  execFileSync("git", ["init", "-q"], { cwd: t.workspace });
  return t;
}

async function run(t: TestHarness, spec: Partial<TaskSpecInput> = {}): Promise<TaskRecord> {
  const { id } = await t.add({ ...DRAFT, ...spec });
  await t.work();
  const [task] = await t.settled(id);
  if (task === undefined) throw new Error("no task");
  return task;
}

const names = (t: TestHarness): string[] =>
  readdirSync(t.workspace)
    .filter((name) => name !== ".git")
    .toSorted();

test("13: the workspace gets what was verified and nothing else of the draft, after the verdict", async () => {
  await using t = await open(
    works(
      `cat mine.txt > done.txt; echo x >> done.txt; ls ${"$PWD"} > seen; echo y > readme.txt; mkdir extra; touch extra/z; touch .git/left`,
    ),
  );
  writeFileSync(join(t.workspace, "seen"), "old\n");
  const task = await run(t, { deliver: ["done.txt", "seen"] });
  expect(task.state).toBe("verified");
  expect(task.folder).toBe(join(`${t.home}-worktrees`, task.id, "tree"));
  expect(names(t)).toEqual(["done.txt", "mine.txt", "readme.txt", "seen"]);
  expect(readFileSync(join(t.workspace, "done.txt"), "utf8")).toBe("not committed\nx\n");
  expect(readFileSync(join(t.workspace, "seen"), "utf8")).toBe("done.txt\nmine.txt\nreadme.txt\nseen\n");
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("first\n");
  expect(existsSync(join(t.workspace, ".git", "left"))).toBe(false);
});

test("13: undo takes back what the verdict put into the workspace, exactly and nothing else", async () => {
  await using t = await open(
    works("echo x > done.txt; echo theirs > readme.txt; rm old.txt; mkdir new; echo n > new/a.txt"),
  );
  writeFileSync(join(t.workspace, "old.txt"), "old\n");
  for (const name of ["readme.txt", "old.txt"]) utimesSync(join(t.workspace, name), 1_600_000_000, 1_600_000_000);
  const before = entriesOf(t.workspace);
  const { id, state } = await run(t, { deliver: ["**"] });
  expect([state, names(t)]).toEqual(["verified", ["done.txt", "mine.txt", "new", "readme.txt"]]);
  const { signal } = new AbortController();
  const dry = await t.tasks.undo(id, { isDryRun: true, signal });
  expect(dry).toMatchObject({ isDone: false, later: [], count: 4 });
  // What the owner does since is theirs: a file that was put is named, another one is left alone.
  writeFileSync(join(t.workspace, "readme.txt"), "by the owner\n");
  writeFileSync(join(t.workspace, "mine.txt"), "more\n");
  const refused = t.tasks.undo(id, { signal });
  await expect(refused).rejects.toThrow(/readme\.txt changed after the agent stopped.*heddle task undo .* --force/);
  expect(names(t)).toContain("done.txt");
  expect(await t.tasks.undo(id, { isForced: true, signal })).toMatchObject({ isDone: true, later: ["readme.txt"] });
  writeFileSync(join(t.workspace, "mine.txt"), "not committed\n");
  const own = (entries: readonly Looked[]): readonly Looked[] => entries.filter(({ path }) => !path.startsWith(".git"));
  expect(differences(own(entriesOf(t.workspace)), own(before), { withTimes: false })).toEqual([]);
  expect(statSync(join(t.workspace, "readme.txt")).mtimeMs).toBe(1_600_000_000_000);
  expect(await t.tasks.undo(id, { signal }), "twice is once").toMatchObject({ isDone: true, later: [] });
});

test("13: what is put into the workspace is newer than what was built there before, whatever its agent says", async () => {
  await using t = await open(works("echo x > done.txt; chmod +x readme.txt; touch -d @1 done.txt readme.txt"));
  writeFileSync(join(t.workspace, "done.txt"), "old\n");
  writeFileSync(join(t.workspace, "built"), "old\n");
  const at = (name: string): number => statSync(join(t.workspace, name)).mtimeMs;
  const readme = at("readme.txt");
  expect(await run(t, { deliver: ["*.txt"] })).toMatchObject({ state: "verified" });
  expect(at("done.txt")).toBeGreaterThan(at("built"));
  expect(Math.round(at("readme.txt")), "the same content").toBe(Math.round(readme));
});

test("13: work that is rejected never reaches the workspace, and its draft is kept while something is only there", async () => {
  await using t = await open(works("echo nothing > done.txt"));
  const task = await run(t);
  expect(task.state).toBe("paused");
  expect(names(t)).toEqual(["mine.txt", "readme.txt"]);
  await t.tasks.cancel(task.id, "enough");
  const { journal } = t.heddle;
  const collect = { journal, home: t.home, olderThanMs: 0, isDryRun: false, now: () => Date.now() + 1000 };
  const signal = AbortSignal.timeout(60_000);
  expect(await collectWorktrees({ ...collect, signal })).toMatchObject([
    { outcome: "kept", reason: "it has changes that were not put into the workspace" },
  ]);
  rmSync(join(task.folder ?? "", "done.txt"));
  expect(await collectWorktrees({ ...collect, signal })).toMatchObject([{ outcome: "removed" }]);
});

test("13: where the owner changed a file meanwhile, nothing is put there, and when it is as before the work goes there without a turn", async () => {
  await using t = await open(works(`${UNTIL_GO}; echo x > done.txt; echo theirs > readme.txt`));
  const { id } = await t.add({ ...DRAFT, deliver: ["*.txt"], maxNudges: 3 });
  await t.work();
  const { folder = "" } = await t.until(id, (task) => task.openPrompt !== undefined);
  writeFileSync(join(t.workspace, "readme.txt"), "by the owner\n");
  writeFileSync(join(folder, "go"), "");
  const [task] = await t.settled(id);
  expect(task?.state).toBe("paused");
  expect(task?.lastCheck?.results.at(-1)).toMatchObject({ name: "apply", outcome: "failed" });
  expect(task?.lastCheck?.results.at(-1)?.message).toContain("readme.txt has changed since the task began");
  expect(names(t)).toEqual(["mine.txt", "readme.txt"]);
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("by the owner\n");
  expect(task?.lastCheck?.review).toMatchObject({ reasons: [{ kind: "delivery" }] });
  const again = await t.tasks.verify(id, { signal: AbortSignal.timeout(60_000) });
  expect(again, "the verdict on the work is the same").toMatchObject({ outcome: "same", now: { verdict: "passed" } });
  expect(task?.reason).toContain(`heddle task resume ${id}`);
  await t.tasks.resume(id);
  expect(await t.settled(id), "nothing is cleared yet").toMatchObject([{ state: "paused" }]);
  writeFileSync(join(t.workspace, "readme.txt"), "first\n");
  await t.tasks.accept(id);
  expect(await t.settled(id)).toMatchObject([{ state: "verified", round: 1 }]);
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("theirs\n");
});

test("13: work that is in its owner's way can be sent back to the agent, who is told what is in the way", async () => {
  const first = works(`${UNTIL_GO}; echo x > done.txt; echo theirs > readme.txt`);
  await using t = await open([...first, ...works("echo first > readme.txt")]);
  const { id } = await t.add({ ...DRAFT, deliver: ["*.txt"], maxNudges: 3 });
  await t.work();
  const { folder = "" } = await t.until(id, (task) => task.openPrompt !== undefined);
  writeFileSync(join(t.workspace, "readme.txt"), "by the owner\n");
  writeFileSync(join(folder, "go"), "");
  const [paused] = await t.settled(id);
  expect(paused?.reason).toContain(`heddle task cancel ${id}, then heddle task retry ${id}`);
  await t.tasks.cancel(id);
  await t.until(id, ({ state }) => state === "cancelled");
  await t.tasks.retry(id);
  expect(await t.settled(id)).toMatchObject([{ state: "verified" }]);
  const prompts = await t.of(id, "task.prompted");
  expect(prompts.at(-1)?.text).toContain("readme.txt has changed since the task began");
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("by the owner\n");
  expect(names(t)).toContain("done.txt");
});

test("13: a link with the whole path of the draft is refused, a relative one comes back", async () => {
  const link = (how: string): Script => works(`echo x > real.txt; ln -s ${how}real.txt done.txt`);
  await using t = await open(link("$PWD/"));
  const task = await run(t, { deliver: ["*.txt"] });
  expect(task.state).not.toBe("verified");
  expect(task.lastCheck?.results.at(-1)).toMatchObject({
    name: "apply",
    outcome: "failed",
    message: expect.stringMatching(/done\.txt; make them relative/),
  });
  expect(names(t)).toEqual(["mine.txt", "readme.txt"]);
  await using u = await open(link(""));
  expect(await run(u, { deliver: ["*.txt"] })).toMatchObject({ state: "verified" });
  expect(readFileSync(join(u.workspace, "done.txt"), "utf8")).toBe("x\n");
});

test("13: two tasks work on one workspace at once; of two that change one file the second is told", async () => {
  const calls = [shell("own=$(basename $(dirname $PWD)); echo x $own > done.txt; echo $own > own-$own.txt")];
  const script: Script = [{ calls }, { calls }, { text: "done" }, { text: "done" }];
  const both = async (t: TestHarness, spec: Partial<TaskSpecInput>): Promise<readonly string[]> => {
    const tasks = [await t.add({ ...DRAFT, ...spec }), await t.add({ ...DRAFT, ...spec })];
    await t.work();
    return (await t.settled(...tasks.map(({ id }) => id))).map(({ state }) => state).toSorted();
  };
  await using t = await open(script);
  const own = { deliver: ["own-*"], checks: [{ kind: "glob-count", glob: "own-*" } as const] };
  expect(await both(t, own)).toEqual(["verified", "verified"]);
  expect(names(t).filter((name) => name.startsWith("own-"))).toHaveLength(2);
  await using u = await open(script);
  expect(await both(u, { deliver: ["done.txt"] })).toEqual(["paused", "verified"]);
});

test("13: killed while verified work is put there, the workspace is as before or as after, and the task ends verified", async () => {
  for (const failpoint of ["tree.during-put", "task.before-verdict"]) {
    const folder = mkdtempSync(join(tmpdir(), "heddle-draft-"));
    try {
      let id = "";
      {
        await using t = await open([], folder);
        ({ id } = await t.add({ ...DRAFT, deliver: ["*.txt"] }));
      }
      const child = strike(folder, id, failpoint);
      expect(child.signal, child.stderr).toBe("SIGKILL");
      await using t = await openTestHarness({ folder });
      await t.work();
      const [task] = await t.settled(id);
      expect(task?.state, failpoint).toBe("verified");
      expect(names(t)).toEqual(["done.txt", "mine.txt", "readme.txt"]);
      expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("better\n");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
});

async function killed(failpoint: string): Promise<{ readonly folder: string; readonly id: string } & Disposable> {
  const folder = mkdtempSync(join(tmpdir(), "heddle-draft-"));
  await using t = await open([], folder);
  const { id } = await t.add({ ...DRAFT, deliver: ["*.txt"] });
  const child = strike(folder, id, failpoint);
  expect(child.signal, child.stderr).toBe("SIGKILL");
  return { folder, id, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

test.each([
  ["changes a file that is not put yet", (at: string) => writeFileSync(join(at, "readme.txt"), "mine\n"), "mine\n"],
  ["removes one", (at: string) => rmSync(join(at, "readme.txt")), undefined],
])("13: where the owner %s after a kill, nothing of the work stays there", async (_how, act, expected) => {
  using left = await killed("tree.during-put@3");
  const workspace = join(left.folder, "workspace");
  expect(readFileSync(join(workspace, "done.txt"), "utf8")).toBe("x\n");
  act(workspace);
  const lines: string[] = [];
  await using t = await openTestHarness({ folder: left.folder });
  await finishPutting({ journal: t.heddle.journal, home: t.home, log: (line) => lines.push(line) });
  expect(lines).toEqual([`${workspace}: undid the changes that a process was writing there when it ended`]);
  const content = (): string | undefined =>
    existsSync(join(workspace, "readme.txt")) ? readFileSync(join(workspace, "readme.txt"), "utf8") : undefined;
  expect([content(), names(t).filter((name) => name !== "readme.txt")]).toEqual([expected, ["mine.txt"]]);
  await t.work();
  const [task] = await t.settled(left.id);
  expect(task).toMatchObject({ state: "paused", reason: expect.stringContaining("readme.txt has changed since") });
  expect([content(), names(t).filter((name) => name !== "readme.txt")]).toEqual([expected, ["mine.txt"]]);
});

test.each(["tree.during-put", "tree.during-put@3", "tree.before-put-end", "task.before-verdict"])(
  "13: work that is there when its task is cancelled, because it was killed at %s, is taken back by undo",
  async (failpoint) => {
    using left = await killed(failpoint);
    await using t = await openTestHarness({ folder: left.folder });
    await finishPutting({ journal: t.heddle.journal, home: t.home, log: () => undefined });
    expect(names(t)).toEqual(["done.txt", "mine.txt", "readme.txt"]);
    const { signal } = new AbortController();
    await t.tasks.cancel(left.id);
    writeFileSync(join(t.workspace, "done.txt"), "by the owner\n");
    await expect(t.tasks.undo(left.id, { signal })).rejects.toThrow("done.txt changed after the agent stopped");
    expect(await t.tasks.undo(left.id, { isForced: true, signal })).toMatchObject({ isDone: true, count: 2 });
    expect(names(t)).toEqual(["mine.txt", "readme.txt"]);
    expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("first\n");
    await expect(t.tasks.undo(left.id, { signal })).rejects.toThrow("nothing of it came back");
  },
);

test("13: work that came before a kill and was not the last word gives way to what the task brings next", async () => {
  using left = await killed("task.before-verdict");
  // The first two answers of the thread are there already.
  const better = "echo x2 > done.txt; echo first > readme.txt";
  await using t = await openTestHarness({
    folder: left.folder,
    script: [{ text: "-" }, { text: "-" }, ...works(better)],
  });
  await t.tasks.cancel(left.id);
  await t.tasks.retry(left.id);
  await t.work();
  expect(await t.settled(left.id)).toMatchObject([{ state: "verified" }]);
  const content = ["done.txt", "readme.txt"].map((name) => readFileSync(join(t.workspace, name), "utf8"));
  expect(content).toEqual(["x2\n", "first\n"]);
});

/** A worker that is killed at the failpoint. */
function strike(
  folder: string,
  id: string,
  failpoint: string,
): { readonly signal: string | null; readonly stderr: string } {
  const program = join(inject("children"), "harness-in-child.mjs");
  const env = { ...process.env, HEDDLE_FAILPOINT: `${failpoint}=kill` };
  const { signal, stderr } = spawnSync(
    process.execPath,
    [program, folder, id, "echo x > done.txt; echo better > readme.txt"],
    { env, encoding: "utf8" },
  );
  return { signal, stderr };
}
