import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { openSandbox, type OpenSandboxOptions } from "./open.ts";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

let workspace: string;
let tmpDir: string;

beforeEach(async () => {
  workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-waiting-")));
  tmpDir = await mkdtemp(join(tmpdir(), "heddle-waiting-tmp-"));
});

afterEach(async () => {
  await rm(workspace, { recursive: true, force: true });
  await rm(tmpDir, { recursive: true, force: true });
});

function policy(writeRoots = [workspace]): SandboxPolicy {
  return { workspace, writeRoots, masked: [], network: "none" };
}

/** Every sandbox that is open has a folder there. */
function openFolders(): Promise<string[]> {
  return readdir(tmpDir);
}

async function run(sandbox: Sandbox, command: string): Promise<number | undefined> {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: ["sh", "-c", command],
    cwd: workspace,
    env: commandEnvironment(process.env, {}),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  return (await owned.exited).exitCode;
}

/** Opens one in a process of its own and returns how many folders of sandboxes there are then. */
async function openInChild(options: OpenSandboxOptions): Promise<number> {
  const source = `
    const { openSandbox } = await import(${JSON.stringify(join(import.meta.dirname, "open.ts"))});
    const { readdirSync } = await import("node:fs");
    const [policy, options] = process.argv.slice(1).map((text) => JSON.parse(text));
    await using sandbox = await openSandbox(policy, options);
    process.stdout.write(String(readdirSync(options.tmpDir).length));
    await sandbox.ready;
  `;
  const node = ["--conditions=heddle-source", "--input-type=module", "-e", source];
  const args = [...node, JSON.stringify(policy()), JSON.stringify({ ...options, tmpDir })];
  return Number((await promisify(execFile)(process.execPath, args)).stdout);
}

test("the first sandbox of a process is opened at once, unless another process has put down that the host gives one", async () => {
  const memoryFile = join(workspace, "host-sandbox");
  const options = { opensAt: "call", memoryFile, backend: "namespaces" } as const;
  expect(await openInChild(options)).toBe(1);
  expect(await openInChild(options)).toBe(0);
});

test("the next sandboxes are opened with their first command, with the same level", async () => {
  await using first = await openSandbox(policy(), { tmpDir });
  expect(await openFolders()).toHaveLength(1);
  await using second = await openSandbox(policy(), { opensAt: "call", tmpDir });
  expect(second.level).toBe(first.level);
  expect(await openFolders()).toHaveLength(1);
  expect(await run(second, "touch inside && ! touch /etc/heddle-outside")).toBe(0);
  expect(existsSync(join(workspace, "inside"))).toBe(true);
  expect(await openFolders()).toHaveLength(2);
});

test("one that was never used has nothing to sweep or to end, and cannot be entered any more", async () => {
  await using _first = await openSandbox(policy(), { tmpDir });
  const waiting = await openSandbox(policy(), { opensAt: "call", tmpDir });
  expect(await waiting.sweep()).toEqual([]);
  expect(await waiting.close()).toEqual([]);
  await expect(waiting.ready).rejects.toMatchObject({ code: "sandbox.failed" });
  expect(await openFolders()).toHaveLength(1);
});

test("time to spare opens none that waits, the first sign of a call does, and somebody stands by in it", async () => {
  await using _first = await openSandbox(policy(), { tmpDir, backend: "namespaces" });
  await using waiting = await openSandbox(policy(), { opensAt: "call", tmpDir, backend: "namespaces" });
  const before = (await openFolders()).length;
  waiting.standBy("pause");
  expect(await openFolders()).toHaveLength(before);
  waiting.standBy();
  await waiting.ready;
  expect(await openFolders()).toHaveLength(before + 1);
  expect(await run(waiting, "grep -q heddle-standby /proc/1/cmdline")).toBe(0);
  const closed = await openSandbox(policy(), { opensAt: "call", tmpDir, backend: "namespaces" });
  await closed.close();
  closed.standBy();
  expect(await openFolders()).toHaveLength(before + 1);
});

test("time to spare opens one that was to be opened then", async () => {
  await using _first = await openSandbox(policy(), { tmpDir, backend: "namespaces" });
  await using waiting = await openSandbox(policy(), { opensAt: "pause", tmpDir, backend: "namespaces" });
  const before = (await openFolders()).length;
  waiting.standBy("pause");
  await vi.waitFor(async () => expect(await openFolders()).toHaveLength(before + 1));
  expect(await run(waiting, "grep -q heddle-standby /proc/1/cmdline")).toBe(0);
});

test("what is wrong with the policy is told at once, not when something runs", async () => {
  await using _first = await openSandbox(policy(), { tmpDir });
  await expect(openSandbox(policy(["/"]), { opensAt: "call", tmpDir })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  const missing = { ...policy(), workspace: join(workspace, "gone") };
  await expect(openSandbox(missing, { opensAt: "call", tmpDir })).rejects.toMatchObject({ code: "workspace.missing" });
});
