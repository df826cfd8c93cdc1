/** Git processes that change what is the owner's. */
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { runGit } from "./run-git.ts";

const env = { PATH: process.env["PATH"], HOME: tmpdir() };

/** A git command that runs a line of shell. */
const line = (text: string): readonly string[] => ["-c", `alias.line=!${text}`, "line"];

/** Of a line of /proc/PID/stat. */
const groupOf = (stat: string): string | undefined => stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2];

test("13: a git process that has to come to its end gets no signal of the terminal, and is not stopped with its task", async () => {
  const stop = new AbortController();
  async function* input(): AsyncGenerator<Buffer> {
    stop.abort();
    yield Buffer.from("to its end\n");
  }
  const args = line("cat /proc/self/stat; cat");
  const end = await runGit({ cwd: tmpdir(), env, args, input: input(), signal: stop.signal, isWhole: true });
  const [stat = "", said] = end.stdout.toString().split("\n");
  expect([end.exitCode, said]).toEqual([0, "to its end"]);
  expect(groupOf(stat)).not.toBe(groupOf(readFileSync("/proc/self/stat", "utf8")));
});

test("another one is ended with its task", async () => {
  const stop = new AbortController();
  async function* input(): AsyncGenerator<Buffer> {
    yield Buffer.from("x");
    stop.abort();
  }
  const end = runGit({ cwd: tmpdir(), env, args: ["hash-object", "--stdin"], input: input(), signal: stop.signal });
  await expect(end).rejects.toMatchObject({ name: "AbortError" });
});
