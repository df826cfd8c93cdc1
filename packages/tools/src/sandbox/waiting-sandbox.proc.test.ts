import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { openSandbox } from "./open.ts";
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

test("the first sandbox of a process is opened at once, whoever may wait", async () => {
  const source = `
    const { openSandbox } = await import(${JSON.stringify(join(import.meta.dirname, "open.ts"))});
    const { readdirSync } = await import("node:fs");
    const [policy, tmpDir] = process.argv.slice(1);
    await using sandbox = await openSandbox(JSON.parse(policy), { mayWait: true, tmpDir });
    process.stdout.write(String(readdirSync(tmpDir).length));
  `;
  const node = ["--conditions=heddle-source", "--input-type=module", "-e", source];
  const { stdout } = await promisify(execFile)(process.execPath, [...node, JSON.stringify(policy()), tmpDir]);
  expect(stdout).toBe("1");
});

test("the next sandboxes are opened with their first command, with the same level", async () => {
  await using first = await openSandbox(policy(), { tmpDir });
  expect(await openFolders()).toHaveLength(1);
  await using second = await openSandbox(policy(), { mayWait: true, tmpDir });
  expect(second.level).toBe(first.level);
  expect(await openFolders()).toHaveLength(1);
  expect(await run(second, "touch inside && ! touch /etc/heddle-outside")).toBe(0);
  expect(existsSync(join(workspace, "inside"))).toBe(true);
  expect(await openFolders()).toHaveLength(2);
});

test("one that was never used has nothing to sweep or to end, and cannot be entered any more", async () => {
  await using _first = await openSandbox(policy(), { tmpDir });
  const waiting = await openSandbox(policy(), { mayWait: true, tmpDir });
  expect(await waiting.sweep()).toEqual([]);
  expect(await waiting.close()).toEqual([]);
  await expect(waiting.ready).rejects.toMatchObject({ code: "sandbox.failed" });
  expect(await openFolders()).toHaveLength(1);
});

test("time to spare opens none that waits, the first sign of a call does, and somebody stands by in it", async () => {
  await using _first = await openSandbox(policy(), { tmpDir, backend: "namespaces" });
  await using waiting = await openSandbox(policy(), { mayWait: true, tmpDir, backend: "namespaces" });
  const before = (await openFolders()).length;
  waiting.standBy("pause");
  expect(await openFolders()).toHaveLength(before);
  waiting.standBy();
  await waiting.ready;
  expect(await openFolders()).toHaveLength(before + 1);
  expect(await run(waiting, "grep -q heddle-standby /proc/1/cmdline")).toBe(0);
  const closed = await openSandbox(policy(), { mayWait: true, tmpDir, backend: "namespaces" });
  await closed.close();
  closed.standBy();
  expect(await openFolders()).toHaveLength(before + 1);
});

test("what is wrong with the policy is told at once, not when something runs", async () => {
  await using _first = await openSandbox(policy(), { tmpDir });
  await expect(openSandbox(policy(["/"]), { mayWait: true, tmpDir })).rejects.toMatchObject({ code: "usage.invalid" });
  const missing = { ...policy(), workspace: join(workspace, "gone") };
  await expect(openSandbox(missing, { mayWait: true, tmpDir })).rejects.toMatchObject({ code: "workspace.missing" });
});
