import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandEnvironment } from "./environment.ts";
import { CappedOutput } from "./output.ts";
import { startCommand, type OwnedProcess, type StartCommandOptions } from "./process.ts";
import { findHostTool } from "../sandbox/host-tools.ts";
import { openSandbox, openUnconfined } from "../sandbox/open.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const levels = [
  { level: "none", isThere: true },
  { level: "namespaces", isThere: true },
  { level: "bwrap", isThere: findHostTool("bwrap") !== undefined },
] as const;

let counter = 0;
/** An argument for `sleep` that no other process on the machine has. */
function uniqueSeconds(): string {
  counter += 1;
  return `${process.pid}${String(counter).padStart(3, "0")}`;
}

function sleeping(seconds: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [program, argument] = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return program?.endsWith("sleep") === true && argument === seconds;
    } catch {
      return false;
    }
  });
}

async function until(isTrue: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error("it did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a command starts when the thread pool is there, which Node could not start on a host that the command has filled", async () => {
  const script = `
    import { readdirSync } from "node:fs";
    import { startCommand } from ${JSON.stringify(new URL("process.ts", import.meta.url).href)};
    const threads = () => readdirSync("/proc/self/task").length;
    const before = threads();
    const enter = () => { console.log(threads() - before); process.exit(); };
    const signal = new AbortController().signal;
    await startCommand({ sandbox: { level: "none", enter }, argv: ["true"], cwd: "/", env: {}, stdin: "ignore", signal });
  `;
  const env = { ...process.env, UV_THREADPOOL_SIZE: "3" };
  const args = ["--conditions=heddle-source", "--input-type=module", "-e", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toBe("3\n");
});

for (const { level, isThere } of levels) {
  describe.runIf(isThere)(`commands at level ${level}${isThere ? "" : " (not installed)"}`, () => {
    let workspace: string;
    let sandbox: Sandbox;

    beforeAll(async () => {
      workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-process-")));
      const policy = { workspace, writeRoots: [workspace], masked: [], network: "none" } as const;
      sandbox = level === "none" ? openUnconfined(policy) : await openSandbox(policy, { backend: level });
    });

    afterAll(async () => {
      await sandbox[Symbol.asyncDispose]();
      await rm(workspace, { recursive: true, force: true });
    });

    async function start(
      command: string,
      options: Partial<Omit<StartCommandOptions, "output">> = {},
    ): Promise<{ owned: OwnedProcess; output: CappedOutput }> {
      const output = new CappedOutput();
      const owned = await startCommand({
        sandbox,
        argv: ["bash", "-c", command],
        cwd: workspace,
        env: commandEnvironment(process.env),
        stdin: "ignore",
        signal: new AbortController().signal,
        ...options,
        output,
      });
      return { owned, output };
    }

    test("the exit code and both streams come back, in the order they were written", async () => {
      const { owned, output } = await start(
        "echo 1; echo 2 >&2; echo 3; echo 4 > /dev/stderr; echo 5 > /dev/stdout; exit 7",
      );
      expect(await owned.exited).toMatchObject({ exitCode: 7, signal: undefined, cause: "exited" });
      expect(output.snapshot().text).toBe("1\n2\n3\n4\n5\n");
      expect(owned.isRunning).toBe(false);
      await owned.kill();
      expect(await owned.exited).toMatchObject({ cause: "exited" });
    });

    test("an ignored input is empty, not open", async () => {
      const { owned, output } = await start("cat; echo end");
      expect(await owned.exited).toMatchObject({ exitCode: 0 });
      expect(output.snapshot().text).toBe("end\n");
    });

    test("an open input takes text until it is ended", async () => {
      const { owned, output } = await start("read line; echo got $line; cat", { stdin: "pipe" });
      await owned.write("first\n");
      await until(() => output.snapshot().text === "got first\n");
      await owned.write("second\n");
      owned.endInput();
      expect(await owned.exited).toMatchObject({ exitCode: 0 });
      expect(output.snapshot().text).toBe("got first\nsecond\n");
      await expect(owned.write("late")).rejects.toMatchObject({ code: "tool.failed" });
    });

    test("writing to a command without input is refused", async () => {
      const { owned } = await start("true");
      await expect(owned.write("x")).rejects.toMatchObject({ code: "tool.failed" });
      await owned.exited;
    });

    test("a time-out ends the command and says so", async () => {
      const seconds = uniqueSeconds();
      const { owned } = await start(`sleep ${seconds} & wait`, { timeoutMs: 300 });
      expect(await owned.exited).toMatchObject({ cause: "timeout" });
      expect(sleeping(seconds)).toEqual([]);
    });

    test("an abort ends the command and says so, and one before the start starts nothing", async () => {
      const controller = new AbortController();
      const seconds = uniqueSeconds();
      const { owned } = await start(`sleep ${seconds}`, { signal: controller.signal });
      await until(() => sleeping(seconds).length > 0);
      controller.abort();
      expect(await owned.exited).toMatchObject({ cause: "aborted" });
      expect(sleeping(seconds)).toEqual([]);
      await expect(start("true", { signal: controller.signal })).rejects.toMatchObject({ code: "tool.cancelled" });
    });

    test("a command may end in an orderly way when it is asked to", async () => {
      const { owned, output } = await start("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done");
      await until(() => output.snapshot().text.includes("up"));
      const before = performance.now();
      await owned.kill();
      expect(output.snapshot().text).toContain("bye");
      expect(await owned.exited).toMatchObject({ exitCode: 3, cause: "killed" });
      expect(performance.now() - before).toBeLessThan(1900);
    });

    test.for([
      ["ignores SIGTERM", (seconds: string) => `trap '' TERM INT HUP; echo up; sleep ${seconds}`],
      ["stops itself", (seconds: string) => `sleep ${seconds} & echo up; kill -STOP $$; wait`],
      ["detaches a child", (seconds: string) => `setsid sleep ${seconds} & echo up; wait`],
      [
        "detaches a child that ignores SIGTERM",
        (seconds: string) => `setsid bash -c "trap '' TERM; sleep ${seconds}" & echo up; wait`,
      ],
      ["forks twice", (seconds: string) => `(setsid bash -c "sleep ${seconds} & disown" &); echo up; sleep ${seconds}`],
    ] as const)("a command that %s is gone within 5 s, with all it started", async ([, command]) => {
      const seconds = uniqueSeconds();
      const { owned, output } = await start(command(seconds));
      await until(() => output.snapshot().text.includes("up") && sleeping(seconds).length > 0);
      const before = performance.now();
      await owned[Symbol.asyncDispose]();
      await owned[Symbol.asyncDispose]();
      expect(performance.now() - before).toBeLessThan(5000);
      expect(sleeping(seconds)).toEqual([]);
      expect((await owned.exited).cause).toBe("killed");
    });

    test("D8: a grandchild that keeps the output open delays the result by at most 2.5 s, and is killed", async () => {
      const seconds = uniqueSeconds();
      const { owned, output } = await start(
        `sleep ${seconds} & (setsid sleep ${seconds} &) ; until [ "$(pgrep -xcf 'sleep ${seconds}')" -ge 2 ]; do :; done; echo done`,
      );
      await until(() => output.snapshot().text.includes("done"));
      const before = performance.now();
      expect(await owned.exited).toMatchObject({ exitCode: 0, cause: "exited" });
      expect(performance.now() - before).toBeLessThan(2500);
      expect(sleeping(seconds)).toEqual([]);
    });

    test("a grandchild that gave the output back is killed with the command all the same", async () => {
      const seconds = uniqueSeconds();
      const { owned } = await start(
        `setsid sleep ${seconds} >/dev/null 2>&1 </dev/null & until pgrep -xf 'sleep ${seconds}' >/dev/null; do :; done`,
      );
      await owned.exited;
      expect(sleeping(seconds)).toEqual([]);
    });

    test("several commands run side by side, and the end of one leaves the others", async () => {
      const [first, second] = [uniqueSeconds(), uniqueSeconds()];
      const a = await start(`setsid sleep ${first} & wait`);
      const b = await start(`setsid sleep ${second} & wait`);
      await until(() => sleeping(first).length > 0 && sleeping(second).length > 0);
      await a.owned.kill();
      expect(sleeping(first)).toEqual([]);
      expect(sleeping(second)).toHaveLength(1);
      expect(b.owned.isRunning).toBe(true);
      await b.owned.kill();
    });

    test("a program that does not exist is a result or a typed failure, never a crash", async () => {
      const output = new CappedOutput();
      const attempt = startCommand({
        sandbox,
        argv: ["heddle-no-such-program"],
        cwd: workspace,
        env: commandEnvironment(process.env),
        stdin: "ignore",
        output,
        signal: new AbortController().signal,
      });
      if (level === "none") await expect(attempt).rejects.toMatchObject({ code: "tool.failed" });
      else expect((await (await attempt).exited).exitCode).not.toBe(0);
    });

    test("starting and ending many commands leaves no descriptor open", async () => {
      await (
        await start("true")
      ).owned.exited;
      const before = readdirSync("/proc/self/fd").length;
      for (let count = 0; count < 24; count += 1) await (await start("echo x", { stdin: "pipe" })).owned.exited;
      // Pipes are made in batches, so a few may be waiting to be used.
      expect(readdirSync("/proc/self/fd").length - before).toBeLessThanOrEqual(8);
    });
  });
}
