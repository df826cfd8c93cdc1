/**
 * `npm run soak`: F35. A server under steady work: turns over many threads, each with a command in its sandbox, and followers
 * that come and go. Memory, descriptors, namespaces, processes and the write-ahead log must stay where they are after the
 * first third, every turn must end, nothing may be missed.
 *
 *   npm run soak                                       2,000 turns over 200 threads, as fast as they go
 *   npm run soak -- --minutes 1440 --threads 20        a day, one turn a second
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { HeddleClient } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { median } from "./measure.ts";

const { values } = parseArgs({
  options: {
    turns: { type: "string", default: "2000" },
    threads: { type: "string", default: "200" },
    minutes: { type: "string" },
  },
});
const THREADS = Number(values.threads);
/** By time, one a second; by number, as fast as they go. */
const limit =
  values.minutes === undefined
    ? { turns: Number(values.turns), everyMs: 0, ms: 24 * 3_600_000 }
    : { turns: Number.POSITIVE_INFINITY, everyMs: 1000, ms: Math.trunc(Number(values.minutes) * 60_000) };

const FOLLOWERS = 10;
const SAMPLE_EVERY_MS = 2000;
/** A follower stays at most so long before it comes back. */
const STAY_MS = 15_000;

const MAX_GROWTH_MB = 24;
const MAX_MORE_DESCRIPTORS = 20;
const MAX_MORE_NAMESPACES = 12;
const MAX_MORE_PROCESSES = 6;
const MAX_WAL_MB = 64;

interface Sample {
  readonly rssMb: number;
  readonly descriptors: number;
  readonly walMb: number;
  /** Of its whole tree, itself not counted. */
  readonly processes: number;
  /** Held by its tree or by its descriptors. */
  readonly namespaces: number;
}

const LAUNCHER = join(import.meta.dirname, "..", "packages", "cli", "bin", "heddle.cjs");
const root = await mkdtemp(join(homedir(), ".heddle-soak-"));
const home = join(root, "home");
const workspace = join(root, "workspace");
await mkdir(home, { mode: 0o700 });
await mkdir(join(workspace, ".git"), { recursive: true });
await writeFile(join(workspace, ".git/HEAD"), "ref: refs/heads/main\n");
/** A turn has two answers: a command, then words. */
await using model = await startModelServer({
  respond: async ({ answers }) =>
    answers % 2 === 0
      ? { calls: [{ tool: "exec_command", args: { cmd: "echo one line" } }] }
      : { text: "a few words of an answer" },
});
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
  const done = new AbortController();
  const over = AbortSignal.any([done.signal, AbortSignal.timeout(limit.ms)]);
  const samples: Sample[] = [];
  const failures: string[] = [];
  let turns = 0;

  async function work(): Promise<void> {
    for (let nth = 0; !over.aborted && nth < limit.turns; nth += 1) {
      const startedAt = performance.now();
      const thread = threads[nth % THREADS];
      if (thread === undefined) return;
      const { turn } = await client.runTurn(thread.id, { input: `turn ${nth}`, clientId: `soak-${nth}` });
      if (turn.status !== "completed") failures.push(`${turn.id} ended as ${turn.status}`);
      turns += 1;
      await sleep(Math.max(0, limit.everyMs - (performance.now() - startedAt)));
    }
    done.abort();
  }

  /** Comes, listens for a while, leaves without a word, and goes on where it was: `follow` fails on a hole. */
  async function follow(): Promise<void> {
    let after = 0;
    while (!over.aborted) {
      const signal = AbortSignal.any([over, AbortSignal.timeout(1000 + Math.trunc(Math.random() * STAY_MS))]);
      try {
        for await (const received of client.follow({ after, signal, deltas: true }))
          if (received.kind === "event") after = received.event.position;
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
  const tree = await treeOf(pid);
  const wal = await stat(join(home, "heddle.db-wal")).catch(() => undefined);
  return {
    rssMb: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024,
    descriptors: (await readdir(`/proc/${pid}/fd`)).length,
    walMb: (wal?.size ?? 0) / 2 ** 20,
    processes: tree.length - 1,
    namespaces: (await namespacesOf(tree)).size,
  };
}

async function treeOf(pid: number): Promise<number[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "")),
  );
  const children = lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
  return [pid, ...(await Promise.all(children.map(treeOf))).flat()];
}

async function namespacesOf(pids: readonly number[]): Promise<Set<string>> {
  const folders = pids.flatMap((pid) => [`/proc/${pid}/ns`, `/proc/${pid}/fd`]);
  const names = await Promise.all(
    folders.map(async (folder) => (await readdir(folder).catch(() => [])).map((name) => join(folder, name))),
  );
  const links = await Promise.all(names.flat().map((name) => readlink(name).catch(() => "")));
  return new Set(links.filter((link) => /^[a-z_]+:\[\d+\]$/.test(link) && !/^(?:pipe|socket):/.test(link)));
}

/** The first third is for warming up; the second is held against the last. */
function judge(samples: readonly Sample[], { turns, failures }: { turns: number; failures: string[] }): string[] {
  const third = Math.floor(samples.length / 3);
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  const of = (key: keyof Sample) => (part: readonly Sample[]) => median(part.map((sample) => sample[key]));
  const growthMb = of("rssMb")(last) - of("rssMb")(middle);
  const moreDescriptors = of("descriptors")(last) - of("descriptors")(middle);
  const moreNamespaces = of("namespaces")(last) - of("namespaces")(middle);
  const moreProcesses = of("processes")(last) - of("processes")(middle);
  const walMb = Math.max(...samples.map((sample) => sample.walMb));
  process.stdout.write(
    `${turns} turns over ${THREADS} threads; memory ${of("rssMb")(last).toFixed(0)} MB, ${growthMb.toFixed(1)} MB more than before; ` +
      `descriptors ${of("descriptors")(last)}, ${moreDescriptors} more; namespaces ${of("namespaces")(last)}, ${moreNamespaces} more; ` +
      `processes ${of("processes")(last)}, ${moreProcesses} more; write-ahead log at most ${walMb.toFixed(1)} MB\n`,
  );
  return [
    ...failures,
    ...(turns === 0 ? ["no turn was run"] : []),
    ...(growthMb > MAX_GROWTH_MB ? [`memory grew by ${growthMb.toFixed(1)} MB`] : []),
    ...(moreDescriptors > MAX_MORE_DESCRIPTORS ? [`${moreDescriptors} more descriptors`] : []),
    ...(moreNamespaces > MAX_MORE_NAMESPACES ? [`${moreNamespaces} more namespaces`] : []),
    ...(moreProcesses > MAX_MORE_PROCESSES ? [`${moreProcesses} more processes`] : []),
    ...(walMb > MAX_WAL_MB ? [`the write-ahead log grew to ${walMb.toFixed(1)} MB`] : []),
  ];
}
