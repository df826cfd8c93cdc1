/**
 * What Heddle adds to a turn of an outside agent: the same played program with and without Heddle, in turns. Processor time is that of
 * the whole tree, from the difference of a run with more turns to one with fewer, so that starts cost nothing; wall time is that
 * of turns in an engine that is open. Alone: `node --conditions=heddle-source bench/agent-cost.ts`.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { median } from "./measure.ts";

const ROUNDS = 3;
const FEW = 0;
const MANY = 4;
const WORKER = join(import.meta.dirname, "agent-cost-worker.ts");

export interface AgentCost {
  readonly wallMs: number;
  /** Of the processor time of the program. */
  readonly cpuPercent: number;
}

/** The medians of the differences of each round: what a neighbour takes is in both runs of one. */
export async function measureAgentCost(folder: string): Promise<AgentCost> {
  const walls: number[] = [];
  const percents: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const isFirst = round % 2 === 0;
    const one = await costOf(folder, isFirst ? "heddle" : "direct");
    const other = await costOf(folder, isFirst ? "direct" : "heddle");
    const [withHeddle, alone] = isFirst ? [one, other] : [other, one];
    walls.push(withHeddle.wallMs - alone.wallMs);
    percents.push((withHeddle.cpuMs / alone.cpuMs - 1) * 100);
    process.stderr.write(
      `outside agent: ${alone.wallMs.toFixed(0)} ms and ${alone.cpuMs.toFixed(0)} ms of CPU a turn, with Heddle ${walls.at(-1)?.toFixed(1)} ms and ${percents.at(-1)?.toFixed(1)} % more\n`,
    );
  }
  return { wallMs: median(walls), cpuPercent: median(percents) };
}

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

async function costOf(folder: string, which: "heddle" | "direct"): Promise<Cost> {
  const few = await runOf(folder, which, FEW);
  const many = await runOf(folder, which, MANY);
  return { wallMs: median(many.walls), cpuMs: (many.cpuMs - few.cpuMs) / (MANY - FEW) };
}

async function runOf(
  folder: string,
  which: string,
  turns: number,
): Promise<{ readonly walls: readonly number[]; readonly cpuMs: number }> {
  const home = await mkdtemp(join(folder, "heddle-agent-cost-"));
  try {
    const args = [
      "--conditions=heddle-source",
      "--disable-warning=ExperimentalWarning",
      WORKER,
      home,
      which,
      String(turns),
    ];
    // `times` tells the processor time of all children that were waited for, theirs included.
    const line = '"$@"; code=$?; times >&2; exit $code';
    const { stdout, stderr } = await promisify(execFile)("/bin/sh", ["-c", line, "sh", process.execPath, ...args], {
      timeout: 300_000,
    });
    const walls: readonly number[] = JSON.parse(stdout);
    return { walls, cpuMs: childrenCpuMs(stderr) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Second line of `times`: user and system time of the children, as 0m0.123456s. */
function childrenCpuMs(printed: string): number {
  const line = printed.trim().split("\n").at(-1) ?? "";
  const parts = [...line.matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60_000 + Number(seconds) * 1000, 0);
}

if (import.meta.main) {
  process.stdout.write(`${JSON.stringify(await measureAgentCost(tmpdir()), undefined, 2)}\n`);
}
