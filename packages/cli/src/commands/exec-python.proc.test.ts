import { execFile, execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, type World } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

const WRAPPER = path.join(import.meta.dirname, "..", "..", "test", "run_capture.py");

interface Captured {
  readonly code: number;
  readonly timed_out: boolean;
  readonly thread: string | null;
  readonly last: string | null;
  readonly end: string | null;
}

async function capture(world: World, timeout: number, args: readonly string[]): Promise<Captured> {
  const argv = [WRAPPER, String(timeout), "from python", process.execPath, LAUNCHER, "exec", "--json", ...args];
  const { stdout } = await promisify(execFile)("python3", argv, {
    cwd: world.workspace,
    env: { ...world.env, ...MOCK_KEY },
  });
  return JSON.parse(stdout);
}

test.runIf(hasPython())(
  "a Python wrapper around codex exec works with heddle in its place: capture, resume, failure (needs python3)",
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers }) => ({ text: `answer ${answers}` }),
      faults: (request) =>
        JSON.stringify(request.body).includes("broken") ? { kind: "status", status: 400, body: {} } : undefined,
    });
    const first = await capture(mock.world, 30, ["-"]);
    expect(first).toMatchObject({ code: 0, timed_out: false, last: "answer 0", end: "turn.completed" });
    const second = await capture(mock.world, 30, ["resume", first.thread ?? "", "-"]);
    expect(second).toMatchObject({ code: 0, thread: first.thread, last: "answer 1" });
    expect(await capture(mock.world, 30, ["broken"])).toMatchObject({ code: 4, last: null, end: "turn.failed" });
    expect(await capture(mock.world, 30, ["--codex-exit-codes", "broken"])).toMatchObject({ code: 1 });
  },
);

test.runIf(hasPython())(
  "its time-out kills the group: the stream has its end, and no process is left (needs python3)",
  async () => {
    await using world = await openWorld();
    const mark = `4${Math.trunc(performance.timeOrigin)}`;
    const script = await world.file(
      "script.json",
      JSON.stringify([{ calls: [{ tool: "bash", args: { command: `setsid sleep ${mark} & sleep ${mark}` } }] }]),
    );
    const ran = await capture(world, 3, ["--script", script, "go"]);
    expect(ran).toMatchObject({ code: 143, timed_out: true, end: "turn.failed" });
    expect(await processesWith(mark)).toEqual([]);
  },
);

function hasPython(): boolean {
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function processesWith(mark: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.includes(mark)) found.push(line);
  }
  return found;
}
