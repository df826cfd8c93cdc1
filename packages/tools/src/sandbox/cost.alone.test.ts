import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox, openUnconfined } from "./open.ts";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

/**
 * The bounds leave room for a busy machine; the figures a quiet one gives are in the README of this folder and are shown
 * as annotations: vitest run packages/tools/src/sandbox/cost --reporter=verbose
 */
const ROUNDS = 20;

let workspace: string;
let policy: SandboxPolicy;

beforeAll(async () => {
  workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-cost-")));
  policy = { workspace, writeRoots: [workspace], masked: [], network: "none" };
});

afterAll(async () => {
  await rm(workspace, { recursive: true, force: true });
});

interface Times {
  readonly median: number;
  readonly p95: number;
}

async function measure(rounds: number, work: () => Promise<unknown>): Promise<Times> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const pick = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { median: pick(0.5), p95: pick(0.95) };
}

function show({ median, p95 }: Times): string {
  return `median ${median.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`;
}

async function runTrue(sandbox: Sandbox): Promise<void> {
  await using owned = await startCommand({
    sandbox,
    argv: ["true"],
    cwd: workspace,
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output: new CappedOutput(),
    signal: new AbortController().signal,
  });
  expect((await owned.exited).exitCode).toBe(0);
}

for (const backend of ["namespaces", "bwrap"] as const) {
  const isThere = backend === "namespaces" || findHostTool("bwrap") !== undefined;
  test.runIf(isThere)(
    `${backend}${isThere ? "" : " (not installed)"} costs little to open and little per command`,
    async ({ annotate }) => {
      const plain = await measure(ROUNDS, () => runTrue(openUnconfined(policy)));
      const opened: Sandbox[] = [];
      const opening = await measure(5, async () => opened.push(await openSandbox(policy, { backend })));
      const [sandbox] = opened;
      if (sandbox === undefined) throw new Error("nothing was opened");
      const inside = await measure(ROUNDS, () => runTrue(sandbox));
      const closing = await measure(opened.length, async () => await opened.pop()?.close());
      await annotate(
        `opening ${show(opening)}; command ${show(inside)}, without a sandbox ${show(plain)}; closing ${show(closing)}`,
      );
      expect(opening.median).toBeLessThan(1500);
      expect(inside.median - plain.median).toBeLessThan(60);
    },
  );
}

test("a sweep of ten thousand files stays within its budget", async ({ annotate }) => {
  for (let folder = 0; folder < 500; folder += 1) {
    const path = join(workspace, `d${folder % 20}/e${folder}`);
    await mkdir(path, { recursive: true });
    for (let file = 0; file < 20; file += 1) await writeFile(join(path, `f${file}`), "");
  }
  const start = performance.now();
  await using sandbox = await openSandbox(policy);
  const opening = performance.now() - start;
  await sandbox.sweep();
  const quiet = await measure(ROUNDS, () => sandbox.sweep());
  const busy = await measure(ROUNDS, async () => {
    await writeFile(join(workspace, "d1/e1", String(performance.now())), "");
    expect(await sandbox.sweep()).toEqual([]);
  });
  await annotate(`opening ${opening.toFixed(0)} ms; sweep ${show(quiet)}; after a change ${show(busy)}`);
  expect(busy.median).toBeLessThan(50);
});
