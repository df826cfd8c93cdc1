/**
 * What evidence and envelopes add to a turn and to a call of a tool, in processor time: the same program with and without what they
 * put on record, in turns. Alone: `node --conditions=heddle-source bench/envelope-cost.ts`.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { median } from "./measure.ts";

const ROUNDS = 7;
const WORKER = join(import.meta.dirname, "envelope-cost-worker.ts");

export interface EnvelopeCost {
  readonly helloMs: number;
  readonly callMs: number;
}

/** The median of the differences of each round: what a neighbour takes is in both runs of one. */
export async function measureEnvelopeCost(folder: string): Promise<EnvelopeCost> {
  const hellos: number[] = [];
  const calls: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const isFirst = round % 2 === 0;
    const one = await costOf(folder, isFirst ? "with" : "without");
    const other = await costOf(folder, isFirst ? "without" : "with");
    const sign = isFirst ? 1 : -1;
    hellos.push(sign * (one.helloMs - other.helloMs));
    calls.push(sign * (one.callMs - other.callMs));
    process.stderr.write(
      `envelopes and evidence: ${hellos.at(-1)?.toFixed(2)} ms a hello, ${calls.at(-1)?.toFixed(2)} ms a call\n`,
    );
  }
  return { helloMs: median(hellos), callMs: median(calls) };
}

async function costOf(folder: string, which: "with" | "without"): Promise<EnvelopeCost> {
  const home = await mkdtemp(join(folder, "heddle-envelope-cost-"));
  try {
    const args = ["--conditions=heddle-source", "--disable-warning=ExperimentalWarning", WORKER, home, which];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
    const cost: EnvelopeCost = JSON.parse(stdout);
    return cost;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  process.stdout.write(`${JSON.stringify(await measureEnvelopeCost(tmpdir()), undefined, 2)}\n`);
}
