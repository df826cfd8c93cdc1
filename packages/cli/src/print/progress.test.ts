import { expect, test } from "vitest";
import { render } from "../../test/small-terminal.ts";
import type { Output } from "./output.ts";
import { showProgressOf } from "../tasks/task-progress.ts";
import { showProgress } from "./progress.ts";

function openTerminal(columns: number, isTerminal = true) {
  let text = "";
  let now = 0;
  let tick: () => void = () => undefined;
  const write = (more: string): boolean => {
    text += more;
    return true;
  };
  const out: Output = { isTerminal, isClosed: false, isBehind: false, write: async (more) => void write(more) };
  const progress = showProgress({
    out,
    stream: { columns, write },
    now: () => now,
    everySecond(call) {
      tick = call;
      return { [Symbol.dispose]: () => (tick = () => undefined) };
    },
  });
  return {
    progress,
    rows: () => render(text, columns),
    raw: () => text,
    after: (ms: number) => {
      now += ms;
      tick();
    },
  };
}

test("14: a long silence shows what runs, since when, and the age of its last output", async () => {
  const { progress, rows, after } = openTerminal(70);
  await progress.out.write("$ npm test\n");
  progress.begin("turn", "waiting for the model");
  progress.begin("item", "$ npm test", "turn");
  after(2000);
  expect(rows()).toEqual(["$ npm test", ""]);
  after(2000);
  expect(rows()).toEqual(["$ npm test", "… $ npm test: 4 s"]);
  progress.touch("item");
  after(70_000);
  expect(rows()).toEqual(["$ npm test", "… $ npm test: 1 min 14 s, last output 1 min 10 s ago"]);
  progress.begin("other", "[b] waiting for the model");
  after(1000);
  expect(rows()).toEqual(["$ npm test", "… [b] waiting for the model: 1 s, 1 more"]);
  progress.end("other");
  await progress.out.write("done\n");
  expect(rows()).toEqual(["$ npm test", "done", ""]);
  progress.end("item");
  after(5000);
  expect(rows()).toEqual(["$ npm test", "done", "… waiting for the model: 1 min 20 s"]);
  progress.end("turn");
  expect(rows()).toEqual(["$ npm test", "done", ""]);
  after(5000);
  expect(rows()).toEqual(["$ npm test", "done", ""]);
});

test("14: the line fits the terminal, waits for a line to end, and is not for pipes", async () => {
  const narrow = openTerminal(24);
  narrow.progress.begin("item", `$ ${"x".repeat(100)}`);
  narrow.after(10_000);
  expect(narrow.rows()).toEqual(["… $ xxxxxxxxxxxx…: 10 s"]);
  await narrow.progress.out.write("half a line");
  narrow.after(10_000);
  expect(narrow.rows()).toEqual(["half a line"]);
  const pipe = openTerminal(80, false);
  pipe.progress.begin("item", "$ x");
  pipe.after(10_000);
  expect(pipe.raw()).toBe("");
});

test("14: a check of a task that takes long is shown until the task reports something else", () => {
  const { progress, rows, after } = openTerminal(60);
  const stream = "task_1";
  const check = { type: "task.checking", v: 1, attempt: 1, name: "tests npm test", room: "baseline" } as const;
  showProgressOf(progress, { stream, body: check }, "[fix]");
  after(4000);
  expect(rows()).toEqual(["… [fix] runs tests npm test: 4 s"]);
  showProgressOf(progress, { stream, body: { type: "task.woken", v: 1 } }, "[fix]");
  after(4000);
  expect(rows()).toEqual([""]);
});
