/**
 * What Heddle adds to a turn of an outside agent: the same played program with and without Heddle, turn by turn, so that what a
 * neighbour takes is taken from both. Processor time is that of the whole tree. Alone, also on a busy machine:
 * `node --conditions=heddle-source bench/agent-cost.ts [PAIRS]`, and with `idle` for a program that does nothing but speak.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Spent } from "./agent-cost-worker.ts";
import { median } from "./measure.ts";

const PAIRS = 12;
const WORKER = join(import.meta.dirname, "agent-cost-worker.ts");

export interface AgentCost {
  readonly wallMs: number;
  /** Of the processor time of the program. */
  readonly cpuPercent: number;
}

interface Pair {
  readonly heddle: Spent;
  readonly alone: Spent;
}

/** Wall time by the median of the differences of each pair; processor time by all pairs together, as its ticks are coarse. */
export async function measureAgentCost(
  folder: string,
  { pairs = PAIRS, isIdle = false }: { readonly pairs?: number; readonly isIdle?: boolean } = {},
): Promise<AgentCost & { readonly cpuMs: number }> {
  const home = await mkdtemp(join(folder, "heddle-agent-cost-"));
  try {
    const args = ["--conditions=heddle-source", "--disable-warning=ExperimentalWarning", WORKER, home, String(pairs)];
    const { stdout } = await promisify(execFile)(process.execPath, [...args, ...(isIdle ? ["idle"] : [])], {
      timeout: 300_000,
    });
    const all: readonly Pair[] = JSON.parse(stdout);
    const sum = (of: (one: Pair) => number): number => all.reduce((total, one) => total + of(one), 0) / all.length;
    const [withHeddle, alone] = [sum(({ heddle }) => heddle.cpuMs), sum((one) => one.alone.cpuMs)];
    const wallMs = median(all.map(({ heddle, alone: direct }) => heddle.wallMs - direct.wallMs));
    const cpuMs = withHeddle - alone;
    const cpuPercent = (withHeddle / alone - 1) * 100;
    process.stderr.write(
      `outside agent: ${alone.toFixed(0)} ms of CPU a turn, with Heddle ${cpuMs.toFixed(1)} ms more (${cpuPercent.toFixed(1)} %), and ${wallMs.toFixed(1)} ms longer\n`,
    );
    return { wallMs, cpuPercent, cpuMs };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const words = process.argv.slice(2);
  const isIdle = words.includes("idle");
  const pairs = words.find((word) => /^\d+$/.test(word));
  const cost = await measureAgentCost(tmpdir(), { isIdle, ...(pairs === undefined ? {} : { pairs: Number(pairs) }) });
  process.stdout.write(`${JSON.stringify(cost, undefined, 2)}\n`);
}
