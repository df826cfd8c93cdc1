import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { openCgroup } from "./cgroup.ts";
import { findHostTool } from "./host-tools.ts";
import { isPidMaxOfNamespace } from "./limiter.ts";
import { halfOf, limitsFor, readHeadroom } from "./limits.ts";
import { openSandbox } from "./open.ts";
import type { Sandbox } from "./sandbox.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "heddle-limits-test-"));
  folders.push(folder);
  return folder;
}

interface RunOptions {
  /** Both outputs go one way, so that a standby may run it. */
  readonly isPlain?: boolean;
}

async function run(sandbox: Sandbox, argv: readonly string[], { isPlain = true }: RunOptions = {}): Promise<string> {
  const output = new CappedOutput();
  await using command = await startCommand({
    sandbox,
    argv,
    cwd: sandbox.policy.workspace,
    env: { PATH: process.env["PATH"] ?? "" },
    stdin: "ignore",
    output,
    ...(isPlain ? {} : { errors: output }),
    signal: AbortSignal.timeout(60_000),
  });
  await command.exited;
  await output.close();
  return output.snapshot().text;
}

/** Starts processes until one cannot be started, and says how many there are. */
const SWARM = `
const { spawn } = require("node:child_process");
let started = 0;
const next = () => {
  if (started === 700) return done();
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  child.once("spawn", () => { started += 1; next(); });
  child.once("error", done);
};
const done = () => { console.log("started " + started); process.exit(0); };
next();
`;

const HOG = `
const kept = [];
try { for (let i = 0; i < 64; i += 1) kept.push(Buffer.alloc(16 * 2 ** 20, 1)); } catch (error) { console.log(error.message); }
console.log("kept " + kept.length);
`;

const isRoot = process.getuid?.() === 0;
const backends = [
  { backend: "namespaces", isThere: true },
  { backend: "bwrap", isThere: findHostTool("bwrap") !== undefined },
] as const;

for (const { backend, isThere } of backends) {
  describe.runIf(isThere)(`12.6: limits with ${backend}`, () => {
    const isHeld = !isRoot || (backend === "namespaces" && isPidMaxOfNamespace(release()));

    test.runIf(isHeld)("a command that starts processes without end is stopped at the limit", async () => {
      const workspace = tempFolder();
      const policy = { workspace, writeRoots: [], masked: [], network: "none", limits: { processes: 800 } } as const;
      await using sandbox = await openSandbox(policy, { backend });
      expect((await sandbox.ready).processes).toMatchObject({ max: 800 });
      for (const isPlain of [true, false]) {
        sandbox.standBy();
        const count = Number(
          /started (\d+)/.exec(await run(sandbox, [process.execPath, "-e", SWARM], { isPlain }))?.[1],
        );
        expect(count).toBeGreaterThan(20);
        expect(count).toBeLessThan(800 - 364);
      }
      // What is over leaves room for the next, and so does what goes on.
      expect(await run(sandbox, ["sh", "-c", "echo still here"])).toBe("still here\n");
      const output = new CappedOutput();
      await using hog = await startCommand({
        sandbox,
        argv: [process.execPath, "-e", SWARM.replace("process.exit(0)", "setTimeout(() => 0, 60000)")],
        cwd: workspace,
        env: { PATH: process.env["PATH"] ?? "" },
        stdin: "ignore",
        output,
        signal: AbortSignal.timeout(60_000),
      });
      await expect.poll(() => output.snapshot().text, { timeout: 60_000 }).toContain("started");
      for (const isPlain of [true, false, true]) {
        sandbox.standBy();
        expect(await run(sandbox, ["sh", "-c", "echo beside it"], { isPlain })).toBe("beside it\n");
      }
      expect(hog.isRunning).toBe(true);
    });

    test.runIf(isHeld)(
      "a sandbox that leaves half of its processes to child threads holds the other half",
      async () => {
        const limits = { processes: 1600, keepsForChildren: true };
        const policy = { workspace: tempFolder(), writeRoots: [], masked: [], network: "none", limits } as const;
        await using sandbox = await openSandbox(policy, { backend });
        expect((await sandbox.ready).processes).toMatchObject({ max: 800 });
        const count = Number(/started (\d+)/.exec(await run(sandbox, [process.execPath, "-e", SWARM]))?.[1]);
        expect(count).toBeGreaterThan(20);
        expect(count).toBeLessThan(800 - 364);
      },
    );

    test("a process that takes more memory than allowed gets no more", async () => {
      const workspace = tempFolder();
      const limits = { memoryBytes: 512 * 2 ** 20 };
      await using sandbox = await openSandbox(
        { workspace, writeRoots: [], masked: [], network: "none", limits },
        { backend },
      );
      expect((await sandbox.ready).memory).toMatchObject({ maxBytes: 512 * 2 ** 20 });
      for (const isPlain of [true, false]) {
        sandbox.standBy();
        const text = await run(sandbox, [process.execPath, "-e", HOG], { isPlain });
        const kept = Number(/kept (\d+)/.exec(text)?.[1] ?? 0);
        expect(kept).toBeLessThan(32);
      }
    });

    test("a process that computes longer than allowed is ended, with the limit on record, and others go on", async () => {
      const workspace = tempFolder();
      await using sandbox = await openSandbox(
        { workspace, writeRoots: [], masked: [], network: "none", limits: { cpuSec: 1 } },
        { backend },
      );
      expect((await sandbox.ready).cpu).toEqual({ by: "rlimit", maxSec: 1 });
      for (const isPlain of [true, false]) {
        sandbox.standBy();
        const command = "sh -c 'while :; do :; done'; echo ended $?; ulimit -t 9 2>/dev/null || echo kept $(ulimit -t)";
        const text = await run(sandbox, ["sh", "-c", command], { isPlain });
        expect(text).toMatch(/^ended (137|152)\nkept 1\n$/m);
      }
    });

    test("whatever runs inside is ended before Heddle when memory runs out", async () => {
      const workspace = tempFolder();
      await using sandbox = await openSandbox({ workspace, writeRoots: [], masked: [], network: "none" }, { backend });
      for (const isPlain of [true, false]) {
        sandbox.standBy();
        const inside = Number(await run(sandbox, ["cat", "/proc/self/oom_score_adj"], { isPlain }));
        expect(inside).toBeGreaterThan(Number(readFileSync("/proc/self/oom_score_adj", "utf8")));
      }
    });
  });
}

describe("12.6: what a sandbox may use", () => {
  test("is cut to half of what the host has left, and never to nothing", () => {
    const wanted = { processes: 1000, memoryBytes: 2 ** 32 };
    expect(limitsFor(wanted, { processes: undefined, memoryBytes: 2 ** 40 })).toEqual(wanted);
    expect(limitsFor(wanted, { processes: 500, memoryBytes: 2 ** 31 })).toEqual({
      processes: 250,
      memoryBytes: 2 ** 30,
    });
    expect(limitsFor(wanted, { processes: 0, memoryBytes: 0 })).toEqual({ processes: 32, memoryBytes: 128 * 2 ** 20 });
    expect(limitsFor({}, { processes: undefined, memoryBytes: 2 ** 34 }).memoryBytes).toBe(2 ** 33);
  });

  test("is one half where child threads have the other, and never nothing", () => {
    expect(halfOf({ processes: 201, memoryBytes: 2 ** 32 })).toEqual({ processes: 100, memoryBytes: 2 ** 31 });
    expect(halfOf({ processes: 40, memoryBytes: 2 ** 27 })).toEqual({ processes: 32, memoryBytes: 2 ** 27 });
  });

  test("is read from this host as numbers", () => {
    const { processes, memoryBytes } = readHeadroom();
    expect(memoryBytes).toBeGreaterThan(0);
    if (processes !== undefined) expect(processes).toBeGreaterThan(0);
  });

  test("the number of pids is the host's own before Linux 6.14, and is left alone there", () => {
    expect(
      ["5.15.0-91-generic", "6.1.0-18-amd64", "6.13.9", "6.14.0", "6.18.44-fc", "7.0.1"].map(isPidMaxOfNamespace),
    ).toEqual([false, false, false, true, true, true]);
  });
});

describe("12.6: a cgroup for a sandbox", () => {
  const limits = { processes: 77, memoryBytes: 5_000_000 };

  /** A tree of files like the kernel's, at the path of this process. */
  function hierarchy(handedOn: string): { root: string; group: string } {
    const root = tempFolder();
    const own = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "/";
    const group = join(root, own);
    mkdirSync(group, { recursive: true });
    writeFileSync(join(group, "cgroup.subtree_control"), `${handedOn}\n`);
    return { root, group };
  }

  test("is made where the controllers are handed on, and gets the limits", () => {
    const { root, group } = hierarchy("cpu memory pids");
    using opened = openCgroup(limits, [root]);
    const folder = join(group, readdirSync(group).find((name) => name.startsWith("heddle-")) ?? "none");
    expect(opened?.procs).toBe(join(folder, "cgroup.procs"));
    expect(readFileSync(join(folder, "pids.max"), "utf8")).toBe("77");
    expect(readFileSync(join(folder, "memory.max"), "utf8")).toBe("5000000");
    opened?.add([process.pid]);
    expect(readFileSync(join(folder, "cgroup.procs"), "utf8")).toBe(String(process.pid));
  });

  test("is not made where they are not", () => {
    const { root, group } = hierarchy("cpu");
    expect(openCgroup(limits, [root])).toBeUndefined();
    expect(readdirSync(group)).toEqual(["cgroup.subtree_control"]);
  });

  test("of a Heddle that has died is removed by the next, that of a living one is not", () => {
    const { root, group } = hierarchy("memory pids");
    using living = openCgroup(limits, [root]);
    mkdirSync(join(group, "heddle-999999999-1-1"));
    using next = openCgroup(limits, [root]);
    expect(living).toBeDefined();
    expect(next).toBeDefined();
    expect(readdirSync(group).filter((name) => name.startsWith("heddle-"))).toHaveLength(2);
  });
});
