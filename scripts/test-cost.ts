/**
 * Runs in a worker before each test file (`setupFiles`) and leaves in its meta what it cost: processor time of this thread,
 * or of this process and of all that it started and waited for. A child that outlives its file counts to the next one.
 */
import { isMainThread } from "node:worker_threads";
import { afterAll } from "vitest";
import { childrenMs } from "./processor-time.ts";

declare module "vitest" {
  interface TaskMeta {
    processorMs?: number;
  }
}

const before = processorMs();

// The first to be registered is the last to run. Vitest reads from the pattern that no fixture is asked for.
// oxlint-disable-next-line no-empty-pattern
afterAll(({}, { file }) => {
  file.meta.processorMs = processorMs() - before;
});

function processorMs(): number {
  if (!isMainThread) return inMs(process.threadCpuUsage());
  return inMs(process.cpuUsage()) + (childrenMs() ?? 0);
}

function inMs(usage: NodeJS.CpuUsage): number {
  return (usage.user + usage.system) / 1000;
}
