/** `heddle contest`, and contests through `heddle task`, against a model server on loopback. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { run, start, type Ran } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

const WORKS = "gpt-5.5";
const LIES = "gpt-5.5-mini";

/**
 * One model does the work, until it hears that its command has succeeded: of one that was killed with Heddle nobody knows. The
 * other says that it did.
 */
const respond: NonNullable<ModelServerOptions["respond"]> = ({ body }) =>
  JSON.parse(JSON.stringify(body)).model === WORKS && !JSON.stringify(body).includes("exited with code 0")
    ? { calls: [{ tool: "exec_command", args: { cmd: "echo made > done.txt" } }] }
    : { text: "It is done.\nTASK COMPLETE" };

const task = (more = ""): string =>
  `workspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\nmax_nudges: 0\n${more}`;
const AGENTS = `agents: [{ name: liar, model: ${LIES} }, { name: worker, model: ${WORKS} }]\n`;

async function heddle({ world }: MockWorld, ...args: readonly string[]): Promise<Ran> {
  return await run(args, { world, env: MOCK_KEY, withinMs: 120_000 });
}

const TIMES = new Set(["timeMs", "tokens"]);

/** What differs from run to run, by what it is. */
function told(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) => {
    if (typeof value === "string")
      return value.replaceAll(/task_[0-9a-f-]+/g, "ID").replaceAll(/bench-\w+-/g, "bench-H-");
    return TIMES.has(key) && typeof value === "number" ? value > 0 : value;
  });
}

const row = (number: number, name: string, facts: object) => ({
  number,
  name,
  taskId: "ID",
  // The model has no price that is known, and so no cost that would be.
  isCostPartial: true,
  timeMs: true,
  turns: 1,
  tokens: true,
  isPicked: false,
  ...facts,
});
const LIAR = {
  state: "cancelled",
  isVerified: false,
  why: "paused (nudges): after 0 nudges: file-exists done.txt: done.txt does not exist",
};

test("a contest in a task file is run, shown as a table and whole as JSON, and only verified work comes back", async () => {
  await using mock = await openMockWorld({ respond });
  await mock.world.file("workspace/make.yaml", task(`${AGENTS}pick: best\n`));
  const ran = await heddle(mock, "task", "run", "make.yaml");
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  expect(ran.stdout).toContain("contest: 1 liar, 2 worker");
  expect(ran.stdout).toContain("picked contestant 2: the only one that was verified");
  expect(await readFile(path.join(mock.world.workspace, "done.txt"), "utf8")).toBe("made\n");
  const shown = await heddle(mock, "contest", "show", "make");
  expect(shown.stdout).toMatch(/^=#= verified {2}picked 2 worker: the only one that was verified$/m);
  expect(shown.stdout).toMatch(/^ +→ {2}2 {2}worker +verified +\S.* {2}1 {5} 1 files \+1 -0/m);
  expect(shown.stdout).toMatch(/^ +1 {2}liar +not verified /m);
  const json = await heddle(mock, "contest", "show", "make", "--json");
  expect(told(json.stdout)).toEqual({
    id: "ID",
    name: "make",
    state: "verified",
    pick: "best",
    order: ["lines", "cost", "time"],
    generation: 1,
    hasEnded: true,
    picked: { number: 2, reason: "the only one that was verified" },
    rows: [
      row(1, "liar", LIAR),
      row(2, "worker", {
        state: "verified",
        isVerified: true,
        isPicked: true,
        why: "the only one that was verified",
        rank: 1,
        size: { files: 1, added: 1, removed: 0 },
      }),
    ],
  });
  const page = await heddle(mock, "task", "show", "make");
  expect(page.stdout).toContain("contestant");
  const other = await heddle(mock, "task", "add", "make.yaml");
  expect(other.code).toBe(0);
  expect(await heddle(mock, "contest", "show", "no such one")).toMatchObject({ code: 2 });
});

test("a file whose contest cannot be is refused with line and way on", async () => {
  await using mock = await openMockWorld({ respond });
  const lint = async (more: string): Promise<string> => {
    await mock.world.file("workspace/t.yaml", task(more));
    return (await heddle(mock, "task", "lint", "t.yaml")).stdout;
  };
  expect(await lint("pick: best\n")).toBe(
    "t.yaml:5:1: pick is about contestants, and there are none; add agents: [codex, claude]\n",
  );
  expect(await lint("agents: [codex, claude]\nthread: abc\n")).toBe(
    "t.yaml:6:1: contestants cannot share a thread; leave out thread or agents\n",
  );
  expect(await lint("agents: [codex, claude]\norder: cost\n")).toBe(
    "t.yaml:6:1: order ranks contestants; it needs pick: best\n",
  );
  expect(await lint("agents: [codex, claude]\npick: best\norder: [score]\n")).toContain(
    "order names score; add the command",
  );
  expect(await lint("agents: [codex, claude]\napply: live\n")).toContain("leave out apply: live");
  expect(await lint("agents: [codex]\n")).toContain("t.yaml:5:");
  expect(await lint("agents: [codex, { runer: claude }]\n")).toContain('did you mean "runner"?');
  expect(
    await lint("agents: [codex, { runner: embedded, model: m }]\nscore: ./score\npick: best\nkeep: all\n"),
  ).not.toContain("t.yaml:");
});

test("a benchmark of 2 tasks, 2 agents and 2 repeats that is killed continues, and counts each run once", async () => {
  await using mock = await openMockWorld({ respond });
  await mock.world.file("workspace/tasks/a.yaml", task().replace("workspace: .", "workspace: .."));
  await mock.world.file("workspace/tasks/b.yaml", task().replace("workspace: .", "workspace: .."));
  const order = [
    "contest",
    "run",
    "tasks",
    "--agents",
    `embedded:${WORKS},embedded:${LIES}`,
    "--repeat",
    "2",
    "--json",
  ];
  // In the third run that works, when its command is on record and has not begun.
  const strike = { HEDDLE_FAILPOINT: "turn.after-intent@3=kill" };
  await using first = start(order, { world: mock.world, env: { ...MOCK_KEY, ...strike } });
  expect((await first.ended).signal).toBe("SIGKILL");
  const ran = await heddle(mock, ...order);
  expect(ran.code).toBe(0);
  const works = { name: `embedded ${WORKS}`, runs: 4, verified: 4, rate: 1 };
  const agent = { isCostPartial: true, timeMs: true, turns: expect.any(Number), tokens: true, open: 0 };
  const report = told(ran.stdout);
  expect(report).toEqual({
    label: "bench-H-1",
    agents: [
      { ...works, ...agent, interval: [expect.closeTo(0.5101, 4), 1] },
      {
        name: `embedded ${LIES}`,
        runs: 4,
        verified: 0,
        rate: 0,
        ...agent,
        interval: [0, expect.closeTo(0.4899, 4)],
      },
    ],
    contests: ["a (1)", "a (2)", "b (1)", "b (2)"].map((name) => ({
      id: "ID",
      name,
      state: "verified",
      rows: [
        expect.objectContaining({ number: 1, isVerified: true, isPicked: true }),
        expect.objectContaining({ number: 2, isVerified: false, isPicked: false }),
      ],
    })),
    isStopped: false,
  });
  expect(existsSync(path.join(mock.world.workspace, "done.txt"))).toBe(false);
  const tasks = (await heddle(mock, "task", "list", "--json", "--limit", "100")).stdout.trimEnd().split("\n");
  expect(tasks).toHaveLength(4 + 8);
  const { label } = JSON.parse(ran.stdout);
  const table = await heddle(mock, "contest", "show", label);
  expect(table.stdout).toMatch(/embedded gpt-5\.5 +4 of 4 +100 % +51 % to 100 %/);
  expect(table.stdout).toMatch(/embedded gpt-5\.5-mini +0 of 4 +0 % +0 % to 49 %/);
});

test("a benchmark that cannot be says why before anything is stored", async () => {
  await using mock = await openMockWorld({ respond });
  await mock.world.file("workspace/t.yaml", task());
  const refusal = async (...args: readonly string[]): Promise<string> =>
    (await heddle(mock, "contest", ...args)).stderr;
  expect(await refusal("run", "t.yaml")).toContain("it names no agents; give them with --agents codex,claude");
  expect(await refusal("run", "t.yaml", "--agents", "embedded")).toContain("a contest has 2 to 16 agents, these are 1");
  expect(await refusal("run", "t.yaml", "--agents", "codex,codex")).toContain(
    "two agents are both called codex, codex",
  );
  expect(await refusal("run", "t.yaml", "--agents", "a,b", "--repeat", "0")).toContain(
    "--repeat is a whole number up to 100",
  );
  expect(await refusal("show")).toContain("write heddle contest show ID");
});
