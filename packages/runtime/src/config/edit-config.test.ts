import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { changeConfig, writeWhole } from "./edit-config.ts";

const TEXT = `# mine
model = "a" # why

[mcp_servers.q]
command = "old" # the old one
args = ["1"]
`;

const change = (key: readonly string[], value: unknown, isJoined = false): string =>
  changeConfig(TEXT, { key, value, isJoined }, "config.toml");

test("a value is changed in its place", () => {
  expect(change(["model"], "b")).toBe(TEXT.replace('"a"', '"b"'));
  expect(change(["model"], null)).toBe(TEXT.replace('model = "a" # why\n', ""));
  expect(change(["profile"], null)).toBe(TEXT);
});

test("a table takes the place of another: what it lacks goes, what both have keeps its comment", () => {
  expect(change(["mcp_servers", "q"], { command: "new" })).toBe(
    TEXT.replace('"old"', '"new"').replace('args = ["1"]\n', ""),
  );
});

test("a table that is joined leaves the rest", () => {
  const joined = change(["mcp_servers", "q"], { cwd: "/w" }, true);
  expect(joined).toBe(`${TEXT}cwd = "/w"\n`);
});

test("a table goes with everything in it", () => {
  expect(change(["mcp_servers", "q"], null)).toBe('# mine\nmodel = "a" # why\n\n[mcp_servers.q]\n');
});

test("lists of tables are refused", () => {
  expect(() => change(["hooks"], [{ event: "Stop" }])).toThrow("takes one value, a list of values or a table");
});

test("a file that somebody has changed meanwhile stays as it is", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-edit-"));
  const file = path.join(folder, "config.toml");
  expect(await writeWhole(file, "a = 1\n", undefined)).toBe(true);
  await writeFile(file, "by = 'hand'\n");
  expect(await writeWhole(file, "a = 2\n", "a = 1\n")).toBe(false);
  expect(await writeWhole(file, "a = 2\n", undefined)).toBe(false);
  expect(await readFile(file, "utf8")).toBe("by = 'hand'\n");
  expect(await writeWhole(file, "a = 2\n", "by = 'hand'\n")).toBe(true);
  expect(await readdir(folder)).toEqual(["config.toml"]);
  await rm(folder, { recursive: true });
});
