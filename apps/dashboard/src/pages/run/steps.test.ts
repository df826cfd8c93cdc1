import { expect, test } from "vitest";
import type { Item, StreamedEvent, TaskAttempt, Turn } from "@heddle/protocol/http";
import { checkpoint, foldItem, grow, NOT_GROWN, withGrown } from "./folded.ts";
import { lanesOf } from "./lanes.ts";
import { isError, rowsOf, sinceChecks, whoIs, type Entry } from "./steps.ts";

const USAGE = {
  inputTokens: 1,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 1,
  reasoningOutputTokens: 0,
};

function turn(id: string, more: Partial<Turn> = {}): Turn {
  return {
    id,
    threadId: "t",
    status: "completed",
    seq: 1,
    by: "system",
    clientId: "task_1.1",
    input: [{ type: "text", text: "goal" }],
    settings: {} as Turn["settings"],
    admittedAt: 0,
    endedAt: 100,
    usage: USAGE,
    ...more,
  };
}

function command(id: string, startedAt: number, completedAt: number | undefined, exitCode = 0): Entry {
  const item: Item = {
    type: "commandExecution",
    id,
    callId: id,
    status: completedAt === undefined ? "inProgress" : "completed",
    command: "sh run.sh",
    cwd: "/w",
    output: "",
    ...(completedAt === undefined ? {} : { exitCode }),
  };
  return { seq: startedAt, turnId: "turn_1", item, startedAt, completedAt };
}

function told(at: number, body: object): StreamedEvent {
  const event = {
    threadId: "task_1",
    taskId: "task_1",
    seq: at,
    position: at,
    id: `evt_${at}`,
    at,
    author: "system",
    hash: "",
  };
  return { ...event, body: { v: 1, ...body } as StreamedEvent["body"] };
}

const ATTEMPT: TaskAttempt = {
  attempt: 1,
  startedAt: 0,
  prompts: [{ round: 1, at: 0, why: "first", text: "goal" }],
  turns: 1,
  usage: USAGE,
};
const CHECKED = told(110, {
  type: "task.checked",
  attempt: 1,
  round: 1,
  passed: false,
  results: [{ name: "tests", kind: "tests", outcome: "failed", message: "1 failed", startedAt: 101, durationMs: 9 }],
  violations: [],
});

test("rows are in the order in which things happened, and a turn says who began it", () => {
  const rows = rowsOf({
    items: [command("a", 10, 20), command("b", 30, 40, 1)],
    turns: [turn("turn_1")],
    log: [told(100, { type: "task.claimed", attempt: 1, by: "report", summary: "done" }), CHECKED],
    attempts: [ATTEMPT],
  });
  expect(rows.map(({ kind }) => kind)).toEqual(["turn", "item", "item", "claim", "checks"]);
  expect(rows[0]).toMatchObject({ why: "started by the harness, the goal", number: 1 });
  expect(rows.filter(isError).map(({ key }) => key)).toEqual(["b", "evt_110"]);
});

test("a turn of a person is never shown as the harness's, nor the other way round", () => {
  const [row] = rowsOf({
    items: [],
    turns: [turn("x", { by: "user:ada", clientId: "mine" })],
    log: [],
    attempts: [ATTEMPT],
  });
  expect(row).toMatchObject({ why: "started by ada" });
  expect([whoIs("system"), whoIs("user:owner"), whoIs("user:ada"), whoIs("agent:embedded")]).toEqual([
    "Heddle",
    "the owner",
    "ada",
    "the agent",
  ]);
});

test("a stall stands where it began, with what was done about it and by whom", () => {
  const stall = { type: "task.stalled", attempt: 1, episode: 1, message: "quiet", quietMs: 30, culprits: [] };
  const rows = rowsOf({
    items: [command("a", 10, 90, 143)],
    turns: [turn("turn_1")],
    log: [
      told(60, stall),
      {
        ...told(70, { type: "task.stall-acted", attempt: 1, episode: 1, action: "kill-child", message: "ended" }),
        author: "user:ada",
      },
      told(80, { type: "task.recovered", attempt: 1, episode: 1 }),
    ],
    attempts: [],
  });
  expect(rows.find(({ kind }) => kind === "stall")).toMatchObject({
    at: 30,
    recoveredAt: 80,
    acts: [{ author: "user:ada" }],
  });
});

test("what was found is as old as its work: edits and commands after it are counted", () => {
  const edit: Entry = {
    ...command("c", 130, 140),
    item: {
      type: "fileChange",
      id: "c",
      callId: "c",
      status: "completed",
      changes: [
        { path: "/w/a", kind: "update", diff: "" },
        { path: "/w/b", kind: "add", diff: "" },
      ],
    },
  };
  expect(sinceChecks([command("a", 10, 20), edit, command("d", 150, undefined)], 110)).toEqual({
    edits: 2,
    commands: 1,
    isRunning: true,
  });
});

test("lanes show what failed, what hung and each round of checks with its verdict", () => {
  const lanes = lanesOf({
    items: [command("a", 10, 50, 1)],
    turns: [turn("turn_1")],
    log: [CHECKED],
    now: 1000,
    askedAt: undefined,
  });
  expect(lanes?.spans.map(({ lane, kind, from, to }) => [lane, kind, from, to])).toEqual([
    ["model", "plain", 0, 10],
    ["model", "plain", 50, 100],
    ["tools", "failed", 10, 50],
    ["both", "rejected", 101, 110],
  ]);
  expect(lanes?.sentence).toBe("Where the time went: model 0.1 s, tools 0.0 s, checks 0.0 s");
});

test("pieces that a checkpoint repeats are not shown twice, and the end replaces them all", () => {
  let grown = grow(grow(NOT_GROWN, "one "), "two ");
  grown = checkpoint(grown, "one two ");
  grown = grow(grown, "three");
  const running = command("a", 1, undefined);
  expect(withGrown(running.item, grown)).toMatchObject({ output: "one two three" });
  const whole = { ...running.item, output: "whole", status: "completed" };
  const [entry] = foldItem([running], told(9, { type: "item.completed", turnId: "turn_1", item: whole }));
  expect(entry).toMatchObject({ item: { output: "whole" }, completedAt: 9 });
});
