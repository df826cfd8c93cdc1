/** What programs of many kinds look like while they wait for input, and the end of one of them by its identity. */
import { spawn, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { endProcess, inspectProcess, treeUse } from "../index.ts";

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

async function running(argv: readonly string[]): Promise<AsyncDisposable & { readonly pid: number }> {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, { stdio: ["pipe", "ignore", "ignore"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const { pid = 0 } = child;
  return {
    pid,
    async [Symbol.asyncDispose]() {
      for (const one of treeUse([pid]).pids) process.kill(one, "SIGKILL");
      await ended;
    },
  };
}

const inputsBelow = (pid: number): readonly (string | undefined)[] =>
  treeUse([pid]).pids.map((one) => inspectProcess(one)?.input?.from);

const PYTHON = has("python3");
const SCRIPT = has("script");
const ASKS = `python3 -c 'open("/dev/tty").readline()' </dev/null`;

const WAITING = [
  ["npm init", true, ["npm", "init"], "stdin"],
  ["read of a shell", true, ["sh", "-c", "read answer; true"], "stdin"],
  ["a question of node", true, ["node", "-e", "process.stdin.resume()"], "stdin"],
  ["input() of Python", PYTHON, ["python3", "-c", "input()"], "stdin"],
  [
    "another thread that reads",
    PYTHON,
    ["python3", "-c", "import threading as t; t.Thread(target=input).start()"],
    "stdin",
  ],
  ["select", PYTHON, ["python3", "-c", "import select as s; s.select([0], [], [])"], "stdin"],
  ["poll", PYTHON, ["python3", "-c", "import select as s; p = s.poll(); p.register(0, 1); p.poll()"], "stdin"],
  ["a password that is asked on the terminal", PYTHON && SCRIPT, ["script", "-qc", ASKS, "/dev/null"], "terminal"],
] as const;

for (const [name, isThere, argv, from] of WAITING)
  test.runIf(isThere)(`13: ${name} is seen to wait for input${isThere ? "" : " (not installed)"}`, async () => {
    await using child = await running(argv);
    await expect.poll(() => inputsBelow(child.pid), { timeout: 60_000 }).toContain(from);
  });

test.each([
  ["that sleeps", ["sleep", "60"]],
  [
    "that serves and would read beside it",
    ["node", "-e", "require('net').createServer().listen(0); process.stdin.resume()"],
  ],
])("13: a program %s does not wait for input", async (_name, argv) => {
  await using child = await running(argv);
  await expect.poll(() => inspectProcess(child.pid)?.waitChannel, { timeout: 60_000 }).toMatch(/sleep|poll|epoll/);
  expect(inspectProcess(child.pid)?.input).toBeUndefined();
});

test("13: a process is ended by its identity, with what it started; a number given out again is not hit", async () => {
  await using child = await running(["sh", "-c", "sleep 60 & sleep 60"]);
  await using other = await running(["sleep", "60"]);
  await expect.poll(() => treeUse([child.pid]).pids.length, { timeout: 60_000 }).toBe(3);
  const { startTicks = "" } = inspectProcess(child.pid) ?? {};
  const below = treeUse([child.pid]).pids;
  expect(await endProcess({ pid: child.pid, startTicks: `${startTicks}0` }, 2000)).toBe("gone");
  expect(treeUse([child.pid]).pids).toEqual(below);
  expect(await endProcess({ pid: child.pid, startTicks }, 2000)).toBe("ended");
  expect(below.map((pid) => inspectProcess(pid)?.state ?? "Z")).toEqual(["Z", "Z", "Z"]);
  expect(inspectProcess(other.pid)?.state).toBe("S");
});

test("13: one that does not answer is killed", async () => {
  await using child = await running(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]);
  await expect.poll(() => treeUse([child.pid]).pids.length, { timeout: 60_000 }).toBe(2);
  const { startTicks = "" } = inspectProcess(child.pid) ?? {};
  expect(await endProcess({ pid: child.pid, startTicks }, 300)).toBe("ended");
});
