import { execFileSync } from "node:child_process";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, threadOf } from "../../test/mock-model.ts";

test("resume goes on with a thread by id, as the SDK sends it, and counts this turn and the whole thread", async () => {
  await using mock = await openMockWorld({ respond: ({ answers }) => ({ text: `answer ${answers}` }) });
  const first = await mock.exec(["--experimental-json"], { stdin: "one" });
  const id = threadOf(first);
  // Options before `resume`, the prompt on standard input.
  const second = await mock.exec(
    ["--experimental-json", "--config", `model_reasoning_effort="low"`, "--sandbox", "read-only", "resume", id],
    { stdin: "two" },
  );
  expect(second).toMatchObject({ code: 0 });
  expect(threadOf(second)).toBe(id);
  expect(mock.lastRequest()).toMatch(/one.*answer 0.*two/);
  const end = (ran: typeof first): Record<string, unknown> => ({ ...jsonLines(ran).at(-1) });
  const tokens = (usage: unknown): number => Number((usage as Record<string, number>)["input_tokens"]);
  expect(tokens(end(second)["thread_usage"])).toBe(tokens(end(first)["usage"]) + tokens(end(second)["usage"]));
});

test("resume finds the last thread of this folder, of all folders, and one by its name", async () => {
  await using mock = await openMockWorld({ script: [] });
  const other = path.join(mock.world.root, "other");
  await mkdir(path.join(other, ".git"), { recursive: true });
  await writeFile(path.join(other, ".git/HEAD"), "ref: refs/heads/main\n");
  const here = threadOf(await mock.exec(["--json", "here"]));
  const there = threadOf(await mock.exec(["--json", "there"], { cwd: other }));
  expect(threadOf(await mock.exec(["--json", "resume", "--last", "again"]))).toBe(here);
  expect(threadOf(await mock.exec(["--json", "resume", "--last", "again"], { cwd: other }))).toBe(there);
  const everywhere = await mock.exec(["--json", "resume", "--last", "--all", "again"]);
  expect(threadOf(everywhere)).toBe(there);
  expect(everywhere.stderr).toBe(
    `heddle: the thread continues in ${mock.world.workspace}; until now it was in ${other}\n`,
  );
  const named = await run(["threads", "name", here, "the one"], { world: mock.world });
  expect(named).toMatchObject({ code: 0, stdout: `${here} is now called the one\n` });
  expect(threadOf(await mock.exec(["--json", "resume", "the one", "hello"]))).toBe(here);
});

test("a resume that fits no thread is refused and starts nothing", async () => {
  await using mock = await openMockWorld({ script: [] });
  const empty = await mock.exec(["resume", "--last", "go"]);
  expect(empty).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("there are no threads") });
  await expect(access(path.join(mock.world.home, "heddle.db"))).rejects.toThrow("ENOENT");
  const id = threadOf(await mock.exec(["--json", "make one"]));
  for (const [args, why] of [
    [["resume", "no-such-name", "go"], /no thread has the id or name no-such-name/],
    [
      ["resume", "01a1ddef-663f-7992-951d-be2be3662c1a", "go"],
      /no rollout found for thread id 01a1ddef-.*threads list shows/,
    ],
    [["resume"], /name the thread to resume/],
    [["resume", "--ephemeral", id, "go"], /--ephemeral would delete the resumed thread/],
    [["resume", "-C", path.join(mock.world.root, "none"), id, "go"], /-C .*none does not exist/],
    [["resume", "-C", mock.world.root, id, "go"], /is not inside a git repository/],
    [["--last", "go"], /--last belongs to resume/],
  ] as const) {
    const ran = await mock.exec(args);
    expect(ran).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(why) });
  }
  expect(mock.server.requests).toHaveLength(1);
});

test("fork begins a thread with the past of another; without a prompt it only makes it", async () => {
  await using mock = await openMockWorld({ respond: ({ answers }) => ({ text: `answer ${answers}` }) });
  const parent = threadOf(await mock.exec(["--json", "the past"]));
  const forked = await mock.exec(["--json", "fork", parent, "the branch"]);
  expect(forked).toMatchObject({ code: 0 });
  expect(threadOf(forked)).not.toBe(parent);
  expect(mock.lastRequest()).toMatch(/the past.*answer 0.*the branch/);
  const silent = await mock.exec(["fork", parent]);
  expect(silent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  expect(await mock.exec(["--json", "resume", silent.stdout.trim(), "go on"])).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).toMatch(/the past.*go on/);
});

test("an ephemeral thread is gone when its run is over", async () => {
  await using mock = await openMockWorld({ script: [{ text: "secret words" }] });
  const ran = await mock.exec(["--ephemeral", "go"]);
  expect(ran).toMatchObject({ code: 0, stdout: "secret words\n", stderr: expect.not.stringContaining("record:") });
  const list = await run(["threads", "list", "--all", "--json"], { world: mock.world });
  expect(list).toMatchObject({ code: 0, stdout: "" });
});

test("findings of a review come as text, wherever the answer goes", async () => {
  const answer = JSON.stringify({
    findings: [
      {
        title: "[P1] Wrong sum",
        body: "It is off by one.",
        confidence_score: 0.9,
        priority: 1,
        code_location: { absolute_file_path: "/w/a.ts", line_range: { start: 3, end: 5 } },
      },
    ],
    overall_correctness: "patch is incorrect",
    overall_explanation: "One thing.",
    overall_confidence_score: 0.8,
  });
  const text = "One thing.\n\nReview comment:\n\n- [P1] Wrong sum — /w/a.ts:3-5\n  It is off by one.";
  await using mock = await openMockWorld({ respond: () => ({ text: answer }) });
  const file = path.join(mock.world.root, "answer.txt");
  const shown = await mock.exec(["-o", file, "review", "look at the sums"]);
  expect(shown).toMatchObject({ code: 0, stdout: `${text}\n` });
  expect(await readFile(file, "utf8")).toBe(text);
  const lines = jsonLines(await mock.exec(["--json", "review", "look at the sums"]));
  expect(lines).toContainEqual({ type: "item.completed", item: { id: "item_0", type: "agent_message", text } });
  // What is not a review stays as the model said it.
  expect(await mock.exec(["look at the sums"])).toMatchObject({ code: 0, stdout: `${answer}\n` });
});

test("a second prompt is bad usage, also where exit codes are those of Codex", async () => {
  await using mock = await openMockWorld({ script: [] });
  for (const words of [
    ["do", "it"],
    ["resume", "--last", "do", "it"],
    ["fork", "some-id", "do", "it"],
  ]) {
    expect(await mock.exec(["--codex-exit-codes", ...words])).toMatchObject({ code: 2 });
  }
  expect(await mock.exec(["--codex-exit-codes", "resume", "no-such-name", "go"])).toMatchObject({ code: 1 });
  expect(await mock.exec(["--codex-exit-codes", "--output-schema", "none.json", "go"])).toMatchObject({ code: 1 });
});

test("review asks about exactly the changes that are meant, and may not change anything", async () => {
  await using mock = await openMockWorld({ script: [{ text: "looks right" }] });
  const { workspace } = mock.world;
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-C", workspace, "-c", "user.name=a", "-c", "user.email=a@b", ...args], { encoding: "utf8" });
  git("init", "-q", "-b", "main");
  await writeFile(path.join(workspace, "a.txt"), "one\n");
  git("add", ".");
  git("commit", "-q", "-m", "first");
  const base = git("rev-parse", "HEAD").trim();
  git("checkout", "-q", "-b", "work");
  await writeFile(path.join(workspace, "a.txt"), "two\n");
  git("commit", "-q", "-a", "-m", "second");
  const tip = git("rev-parse", "HEAD").trim();

  const since = await mock.exec(["-s", "workspace-write", "review", "--base", "main"]);
  expect(since).toMatchObject({
    code: 0,
    stdout: "looks right\n",
    stderr: expect.stringContaining("sandbox: read-only"),
  });
  expect(mock.lastRequest()).toContain(`git diff ${base}`);
  expect(
    await mock.exec(["review", "--commit", "HEAD", "--title", "second", "-"], { stdin: "mind the tabs" }),
  ).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).toContain(`git show ${tip}`);
  expect(mock.lastRequest()).toContain("mind the tabs");
  // As callers of Codex write it.
  const named = await run(["-C", workspace, "-c", "model=gpt-5", "review", "--uncommitted"], {
    world: mock.world,
    env: MOCK_KEY,
  });
  expect(named).toMatchObject({ code: 0, stdout: "looks right\n" });
  expect(mock.lastRequest()).toContain("git diff HEAD");
  expect(mock.lastRequest()).toContain(`"model":"gpt-5"`);

  const asked = mock.server.requests.length;
  for (const [args, why] of [
    [["--base", "no-such-branch"], /--base no-such-branch is not a commit/],
    [["--commit", "--help=x"], /needs a value/],
    [["--base", "main", "--uncommitted"], /review one thing/],
    [["--title", "x", "--uncommitted"], /--title names a commit/],
    [[], /say what to review/],
  ] as const) {
    expect(await mock.exec(["review", ...args])).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
  }
  expect(mock.server.requests).toHaveLength(asked);
});

test("threads are listed by folder and page, exported, named and deleted", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const { world } = mock;
  const ids: string[] = [];
  for (const prompt of ["first", "second", "third"]) ids.push(threadOf(await mock.exec(["--json", prompt])));
  const [first = "", second = "", third = ""] = ids;
  const page = await run(["threads", "list", "--limit", "2"], { world });
  expect(page.stdout).toMatch(new RegExp(`^${third} .*third\n${second} .*second\n… more: .*--after ${second}\n$`));
  const rest = await run(["threads", "list", "--after", second], { world });
  expect(rest.stdout).toMatch(new RegExp(`^${first} .*first\n$`));
  expect((await run(["threads", "list"], { world, cwd: world.root })).stdout).toContain("heddle threads list --all");
  const file = path.join(world.root, "out.jsonl");
  expect(await run(["threads", "export", first, "-o", file], { world })).toMatchObject({ code: 0, stdout: "" });
  const printed = await run(["threads", "export", first], { world });
  for (const line of printed.stdout.trimEnd().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
  expect(await run(["threads", "delete", first], { world })).toMatchObject({
    code: 0,
    stdout: `${first} is deleted\n`,
  });
  expect(await run(["threads", "show", first], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("was deleted"),
  });
  expect(await mock.exec(["resume", first, "go"])).toMatchObject({ code: 2 });
  expect((await run(["verify"], { world })).code).toBe(0);
});

test("threads of a home without a record: nothing is found and nothing is made", async () => {
  await using world = await openWorld();
  for (const args of [
    ["show", "x"],
    ["export", "x"],
    ["name", "x", "y"],
    ["delete", "x"],
  ]) {
    expect(await run(["threads", ...args], { world })).toMatchObject({ code: 2, stderr: expect.stringContaining("x") });
  }
  await expect(access(world.home)).rejects.toThrow("ENOENT");
});
