/** What is said of any store knows neither SQLite nor a dialect: one half does not import the other. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FILES = globSync("**/*.ts", { cwd: import.meta.dirname }).filter((path) => !/\.\w+\.ts$/.test(path));
const anyStore = FILES.filter((path) => !path.startsWith("sqlite/") && path !== "index.ts");

function linesWith(path: string, pattern: RegExp): string[] {
  const lines = readFileSync(`${import.meta.dirname}/${path}`, "utf8").split("\n");
  return lines.filter((line) => pattern.test(line)).map((line) => `${path}: ${line.trim()}`);
}

test("14.8: nothing but the SQLite half imports it, or writes SQL", () => {
  expect(anyStore.length).toBeGreaterThan(30);
  expect(anyStore.flatMap((path) => linesWith(path, /from "[^"]*\bsqlite\b|\b(SELECT|INSERT|PRAGMA)\b/))).toEqual([]);
});

test("14.10: nothing in the journal knows a dialect", () => {
  expect(FILES.flatMap((path) => linesWith(path, /codex|\bchat/i))).toEqual([]);
});
