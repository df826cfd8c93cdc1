import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandEnvironment } from "./environment.ts";
import { CappedOutput } from "./output.ts";
import { startCommand } from "./process.ts";
import { openSandbox } from "../sandbox/open.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const MEBIBYTE = 1024 * 1024;
const QUOTA = 64 * MEBIBYTE;
/** More than twice what may be kept, in memory and in the file. */
const FLOOD_BYTES = process.env["HEDDLE_E2E_FULL"] === "1" ? 1_000_000_000 : 150_000_000;

let workspace: string;
let sandbox: Sandbox;

beforeAll(async () => {
  workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-flood-")));
  sandbox = await openSandbox({ workspace, writeRoots: [workspace], masked: [], network: "none" });
});

afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await rm(workspace, { recursive: true, force: true });
});

test.for([
  ["in lines", `yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c ${FLOOD_BYTES}`],
  ["without a newline", `head -c ${FLOOD_BYTES} /dev/zero`],
  [
    "that is not text, on both streams",
    `head -c ${FLOOD_BYTES / 2} /dev/urandom; head -c ${FLOOD_BYTES / 2} /dev/urandom >&2`,
  ],
] as const)(
  `${FLOOD_BYTES / 1e6} MB (1,000 with HEDDLE_E2E_FULL=1) %s grows memory by at most 64 MiB, keeps the loop free and the file within its quota`,
  async ([, command], { annotate }) => {
    const spillFolder = join(workspace, `spill-${Math.random()}`);
    let live = 0;
    const output = new CappedOutput({ spillFolder, spillQuotaBytes: QUOTA, onText: (delta) => (live += delta.length) });
    const delay = monitorEventLoopDelay({ resolution: 5 });
    const before = process.memoryUsage.rss();
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 10);
    delay.enable();
    const started = performance.now();
    await using owned = await startCommand({
      sandbox,
      argv: ["bash", "-c", command],
      cwd: workspace,
      env: commandEnvironment(process.env),
      stdin: "ignore",
      output,
      signal: AbortSignal.timeout(55_000),
    });
    expect(await owned.exited).toMatchObject({ exitCode: 0, cause: "exited" });
    await output.close();
    delay.disable();
    clearInterval(watch);
    const p99 = delay.percentile(99) / 1e6;
    const grownMiB = (peak - before) / MEBIBYTE;
    await annotate(
      `+${grownMiB.toFixed(1)} MiB, p99 ${p99.toFixed(1)} ms, ${(performance.now() - started).toFixed(0)} ms`,
    );
    const snapshot = output.snapshot();
    expect(snapshot.totalBytes).toBe(FLOOD_BYTES);
    expect(Buffer.byteLength(snapshot.text)).toBeLessThanOrEqual(command.includes("urandom") ? 3 * 32_000 : 32_000);
    expect(snapshot.text).toContain(`[... ${snapshot.truncatedBytes} bytes left out ...]`);
    expect((await stat(join(spillFolder, snapshot.blob ?? ""))).size).toBeLessThanOrEqual(QUOTA);
    expect(live).toBeGreaterThan(0);
    expect(grownMiB).toBeLessThanOrEqual(64);
    expect(p99).toBeLessThan(50);
  },
);
