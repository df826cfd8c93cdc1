/**
 * `npm run soak`: F35. A server under steady work for a long time: one turn a second over many threads, followers that come
 * and go. Memory, descriptors and the write-ahead log must stay where they are, every turn must end, nothing may be missed.
 *
 *   npm run soak                      ten minutes
 *   npm run soak -- --minutes 1440    a day
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { HeddleClient } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { median } from "./measure.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);

const THREADS = 20;
const FOLLOWERS = 10;
const TURN_EVERY_MS = 1000;
const SAMPLE_EVERY_MS = 5000;
/** A follower stays at most so long before it comes back. */
const STAY_MS = 15_000;

const MAX_GROWTH_MB = 24;
const MAX_MORE_DESCRIPTORS = 20;
const MAX_WAL_MB = 64;

interface Sample {
  readonly rssMb: number;
  readonly descriptors: number;
  readonly walMb: number;
}

const LAUNCHER = join(import.meta.dirname, "..", "packages", "cli", "bin", "heddle.cjs");
const root = await mkdtemp(join(homedir(), ".heddle-soak-"));
const home = join(root, "home");
const workspace = join(root, "workspace");
await mkdir(home, { mode: 0o700 });
await mkdir(join(workspace, ".git"), { recursive: true });
await using model = await startModelServer({ respond: async () => ({ text: "a few words of an answer" }) });
const provider = `[model_providers.mock]\nname = "mock"\nbase_url = "${model.url}/v1"\nwire_api = "responses"\n`;
await writeFile(join(home, "config.toml"), `model = "gpt-5.5"\nmodel_provider = "mock"\n\n${provider}`);
const env = { PATH: process.env["PATH"] ?? "", HOME: root, HEDDLE_HOME: home };
const server = spawn(process.execPath, [LAUNCHER, "serve"], {
  cwd: workspace,
  env,
  stdio: ["ignore", "pipe", "inherit"],
});
let missed: string[] = ["the soak broke off"];
try {
  for await (const chunk of server.stdout.setEncoding("utf8")) if (String(chunk).includes("serving  unix")) break;
  missed = await soak();
} finally {
  server.kill("SIGTERM");
  await once(server, "close");
}
execFileSync(process.execPath, [LAUNCHER, "verify"], { env, stdio: "inherit" });
await rm(root, { recursive: true, force: true });
for (const line of missed) process.stderr.write(`missed: ${line}\n`);
process.exitCode = missed.length === 0 ? 0 : 1;

async function soak(): Promise<string[]> {
  const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8")) as { url: string };
  const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
  const client = new HeddleClient({ url, token });
  const threads = await Promise.all(Array.from({ length: THREADS }, () => client.createThread({ workspace })));
  const over = AbortSignal.timeout(Math.trunc(minutes * 60_000));
  const samples: Sample[] = [];
  const failures: string[] = [];
  let turns = 0;

  async function work(): Promise<void> {
    for (let nth = 0; !over.aborted; nth += 1) {
      const startedAt = performance.now();
      const thread = threads[nth % THREADS];
      if (thread === undefined) return;
      const { turn } = await client.runTurn(thread.id, { input: `turn ${nth}`, clientId: `soak-${nth}` });
      if (turn.status !== "completed") failures.push(`${turn.id} ended as ${turn.status}`);
      turns += 1;
      await sleep(Math.max(0, TURN_EVERY_MS - (performance.now() - startedAt)));
    }
  }

  /** Comes, listens for a while, leaves without a word, and goes on where it was: `follow` fails on a hole. */
  async function follow(): Promise<void> {
    let after = 0;
    while (!over.aborted) {
      const signal = AbortSignal.any([over, AbortSignal.timeout(1000 + Math.trunc(Math.random() * STAY_MS))]);
      try {
        for await (const heard of client.follow({ after, signal, deltas: true }))
          if (heard.kind === "event") after = heard.event.position;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }

  async function watch(): Promise<void> {
    while (!over.aborted) {
      samples.push(await sampleOf(server.pid ?? 0));
      await sleep(SAMPLE_EVERY_MS, undefined, { signal: over }).catch(() => undefined);
    }
  }

  await Promise.all([work(), watch(), ...Array.from({ length: FOLLOWERS }, () => follow())]);
  return judge(samples, { turns, failures });
}

async function sampleOf(pid: number): Promise<Sample> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const wal = await stat(join(home, "heddle.db-wal")).catch(() => undefined);
  return {
    rssMb: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024,
    descriptors: (await readdir(`/proc/${pid}/fd`)).length,
    walMb: (wal?.size ?? 0) / 2 ** 20,
  };
}

/** The first third is for warming up; the second is held against the last. */
function judge(samples: readonly Sample[], { turns, failures }: { turns: number; failures: string[] }): string[] {
  const third = Math.floor(samples.length / 3);
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  const of = (key: keyof Sample) => (part: readonly Sample[]) => median(part.map((sample) => sample[key]));
  const growthMb = of("rssMb")(last) - of("rssMb")(middle);
  const moreDescriptors = of("descriptors")(last) - of("descriptors")(middle);
  const walMb = Math.max(...samples.map((sample) => sample.walMb));
  process.stdout.write(
    `${turns} turns in ${minutes} min; memory ${of("rssMb")(last).toFixed(0)} MB, ${growthMb.toFixed(1)} MB more than before; ` +
      `descriptors ${of("descriptors")(last)}, ${moreDescriptors} more; write-ahead log at most ${walMb.toFixed(1)} MB\n`,
  );
  return [
    ...failures,
    ...(turns === 0 ? ["no turn was run"] : []),
    ...(growthMb > MAX_GROWTH_MB ? [`memory grew by ${growthMb.toFixed(1)} MB`] : []),
    ...(moreDescriptors > MAX_MORE_DESCRIPTORS ? [`${moreDescriptors} more descriptors`] : []),
    ...(walMb > MAX_WAL_MB ? [`the write-ahead log grew to ${walMb.toFixed(1)} MB`] : []),
  ];
}
