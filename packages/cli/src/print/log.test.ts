import { createRedactor } from "@heddle/journal";
import { expect, test } from "vitest";
import { parseCommandArgs } from "../args.ts";
import { LOG_OPTIONS, openLog } from "./log.ts";

const AT = "2026-11-20T00:00:00.000Z";

function logOf(...args: readonly string[]) {
  const lines: string[] = [];
  let now = Date.parse(AT);
  const log = openLog(
    parseCommandArgs(LOG_OPTIONS, args),
    (line) => lines.push(line),
    () => now,
  );
  return { log, lines, pass: (ms: number) => (now += ms) };
}

test("a line is JSON or text, from a level on, and without secrets that are known", () => {
  const { log, lines } = logOf("--log", "json");
  log.use(createRedactor(["a-key-that-is-known"]));
  log.write?.({ level: "debug", event: "task.claimed", fields: { taskId: "task_1" } });
  log.write?.({ level: "warn", event: "turn.completed", fields: { turnId: "t", code: undefined, ms: 12 } });
  log.line("the key a-key-that-is-known was refused");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { time: AT, level: "warn", event: "turn.completed", turnId: "t", ms: 12 },
    { time: AT, level: "info", event: "note", message: expect.not.stringContaining("a-key-that-is-known") },
  ]);
  const text = logOf("--log-level", "warn");
  text.log.line("not told");
  text.log.write?.({
    level: "error",
    event: "store.refused",
    fields: { code: "store.full", message: "no\nroom \u001b[2J" },
  });
  expect(text.lines).toEqual([`${AT} ERROR store.refused code=store.full message="no\\\\nroom \\\\x1b[2J"`]);
  expect(logOf().log.write).toBeUndefined();
});

test("what happens too often is counted, not told", () => {
  const { log, lines, pass } = logOf("--log", "json");
  const refuse = (): void =>
    log.write?.({ level: "warn", event: "login.refused", fields: { code: "door.unauthorized" } });
  for (let times = 0; times < 250; times += 1) refuse();
  expect(lines).toHaveLength(100);
  log.line("others are told");
  expect(lines).toHaveLength(101);
  pass(60_000);
  refuse();
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ event: "login.refused", suppressed: 150 });
});
