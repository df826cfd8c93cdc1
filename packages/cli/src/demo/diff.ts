/** What the demo shows of the result: the difference on disk, read by git in a sandbox that cannot change it. */
import { isHeddleError } from "@heddle/protocol";
import {
  CappedOutput,
  commandEnvironment,
  openSandbox,
  openUnconfined,
  startCommand,
  type Sandbox,
} from "@heddle/tools";

const TIMEOUT_MS = 60_000;
const DIFF = ["git", "--no-pager", "diff", "--no-ext-diff", "--no-color"];

export interface DiffOptions {
  readonly workspace: string;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export async function workspaceDiff({ workspace, home, env, signal }: DiffOptions): Promise<string> {
  await using sandbox = await openReadOnly(workspace, home);
  const output = new CappedOutput({});
  await using child = await startCommand({
    sandbox,
    argv: DIFF,
    cwd: workspace,
    env: commandEnvironment(env),
    stdin: "ignore",
    output,
    signal,
    timeoutMs: TIMEOUT_MS,
  });
  await child.exited;
  return output.snapshot().text;
}

/** Its own repository: where the host has no kernel sandbox the demo has said so and goes on. */
async function openReadOnly(workspace: string, home: string): Promise<Sandbox> {
  const policy = { workspace, writeRoots: [], masked: [home], network: "none" } as const;
  try {
    return await openSandbox(policy);
  } catch (error) {
    if (isHeddleError(error) && error.code === "sandbox.unavailable") return openUnconfined(policy);
    throw error;
  }
}
