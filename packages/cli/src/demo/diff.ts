/**
 * The demo's own look at the result: it runs the test itself, in a read-only sandbox, and compares what is on disk with
 * what it put there. The agent's word plays no part.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import {
  CappedOutput,
  commandEnvironment,
  openSandbox,
  openUnconfined,
  startCommand,
  type Sandbox,
} from "@heddle/tools";
import { TEST_COMMAND, TEST_FILE } from "./workspace.ts";

const TIMEOUT_MS = 60_000;

export interface TestRun {
  readonly passes: boolean;
  readonly exitCode: number | undefined;
  readonly output: string;
  readonly testFileHash: string;
}

export interface CheckOptions {
  readonly workspace: string;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export async function runTests(options: CheckOptions): Promise<TestRun> {
  const { exitCode, output } = await runInside(TEST_COMMAND, options);
  const testFile = await readFile(join(options.workspace, TEST_FILE));
  return {
    passes: exitCode === 0,
    exitCode,
    output,
    testFileHash: createHash("sha256").update(testFile).digest("hex"),
  };
}

export async function workspaceDiff(options: CheckOptions): Promise<string> {
  const { output } = await runInside(["git", "--no-pager", "diff", "--no-ext-diff", "--no-color"], options);
  return output;
}

async function runInside(
  argv: readonly string[],
  { workspace, home, env, signal }: CheckOptions,
): Promise<{ exitCode: number | undefined; output: string }> {
  await using sandbox = await openReadOnly(workspace, home);
  const output = new CappedOutput({});
  await using child = await startCommand({
    sandbox,
    argv,
    cwd: workspace,
    env: commandEnvironment(env),
    stdin: "ignore",
    output,
    signal,
    timeoutMs: TIMEOUT_MS,
  });
  const { exitCode } = await child.exited;
  return { exitCode, output: output.snapshot().text };
}

/** Its own repository and its own test: where the host has no kernel sandbox the demo has said so and goes on. */
async function openReadOnly(workspace: string, home: string): Promise<Sandbox> {
  const policy = { workspace, writeRoots: [], masked: [home], network: "none" } as const;
  try {
    return await openSandbox(policy);
  } catch (error) {
    if (isHeddleError(error) && error.code === "sandbox.unavailable") return openUnconfined(policy);
    throw error;
  }
}
