/** Servers on standard streams whose client stops reading and leaves: they end all the same. */
import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { LAUNCHER } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

/** More than a pipe and the buffers around it hold, and less than what a reader is disconnected for. */
const REQUESTS = 400;

test.each(["app-server", "acp"])(
  "S53: %s ends with a client that never reads what it was sent and closes its input",
  async (command) => {
    await using mock = await openMockWorld({ script: [] });
    const { world } = mock;
    const child = spawn(process.execPath, [LAUNCHER, command], {
      cwd: world.workspace,
      env: { ...world.env, ...MOCK_KEY },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const ended = new Promise<unknown>((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
    const deadline = AbortSignal.timeout(30_000);
    deadline.addEventListener("abort", () => child.kill("SIGKILL"));
    child.stdin.on("error", () => undefined);
    child.stdin.end(asked());
    expect(await ended).toBe(0);
  },
);

function asked(): string {
  const ids = Array.from({ length: REQUESTS }, (_, index) => index + 1);
  return ids
    .map((id) => `${JSON.stringify({ jsonrpc: "2.0", id, method: `no/${"x".repeat(400)}`, params: {} })}\n`)
    .join("");
}
