/** What is said of any store knows neither SQLite nor a dialect: one half does not import the other. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FILES = globSync("**/*.ts", { cwd: import.meta.dirname }).filter((path) => !/\.\w+\.ts$/.test(path));
const BACKENDS = /^(sqlite|postgres)\//;
const anyStore = FILES.filter(
  (path) => !BACKENDS.test(path) && !path.startsWith("sql/") && path !== "index.ts" && path !== "open-journal.ts",
);

function linesWith(path: string, pattern: RegExp): string[] {
  const lines = readFileSync(`${import.meta.dirname}/${path}`, "utf8").split("\n");
  return lines.filter((line) => pattern.test(line)).map((line) => `${path}: ${line.trim()}`);
}

test("14.8: nothing but the back-ends imports them, or writes SQL, and neither imports the other", () => {
  expect(anyStore.length).toBeGreaterThan(30);
  const foreign = /from "[^"]*\b(sqlite|postgres|sql)\/|\b(SELECT|INSERT|PRAGMA)\b/;
  expect(anyStore.flatMap((path) => linesWith(path, foreign))).toEqual([]);
  const ofBackends = (folder: string, pattern: RegExp): string[] =>
    FILES.filter((path) => path.startsWith(folder)).flatMap((path) => linesWith(path, pattern));
  expect(ofBackends("sqlite/", /from "[^"]*\bpostgres\//)).toEqual([]);
  expect(ofBackends("postgres/", /from "[^"]*\bsqlite\//)).toEqual([]);
  expect(ofBackends("sql/", /from "[^"]*\b(sqlite|postgres)\//)).toEqual([]);
});

test("14.10: nothing in the journal knows a dialect", () => {
  expect(FILES.flatMap((path) => linesWith(path, /codex|\bchat/i))).toEqual([]);
});
