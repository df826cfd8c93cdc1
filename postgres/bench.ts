/**
 * `npm run bench:postgres`: appends that were acknowledged as durable, a second, on Postgres and on SQLite in one run. Each writer
 * is a stream of its own and waits for every answer; several processes share them out.
 * Usage: npm run bench:postgres -- [--seconds 3] [--json]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { openJournal } from "../packages/journal/src/open-journal.ts";
import { said } from "../packages/journal/src/suite/journal.samples.ts";
import { startPostgres } from "./server.ts";

const CASES = [
  { processes: 1, writers: 1 },
  { processes: 1, writers: 4 },
  { processes: 1, writers: 16 },
  { processes: 4, writers: 16 },
] as const;
const TEXT = "x".repeat(400);

interface Work {
  readonly home: string;
  readonly store: string | undefined;
  readonly writers: number;
  readonly seconds: number;
  readonly name: string;
}

interface Done {
  readonly appends: number;
  readonly ms: readonly number[];
}

async function append({ home, store, writers, seconds, name }: Work): Promise<Done> {
  await using journal = await openJournal({ home, store });
  const ms: number[] = [];
  const body = (): ReturnType<typeof said> => said(TEXT);
  await journal.append({ stream: `${name}-warm`, author: "system", events: [body()] });
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  const until = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: writers }, async (_, index) => {
      while (performance.now() < until) {
        const at = performance.now();
        await journal.append({ stream: `${name}-${index}`, author: "system", events: [body()] });
        ms.push(performance.now() - at);
      }
    }),
  );
  return { appends: ms.length, ms: ms.toSorted((a, b) => a - b) };
}

async function measure(work: Omit<Work, "name" | "writers">, processes: number, writers: number) {
  const children = Array.from({ length: processes }, (_, index) => {
    const mine: Work = { ...work, writers: writers / processes, name: `w${processes}-${writers}-${index}` };
    return spawn(
      process.execPath,
      ["--conditions=heddle-source", import.meta.filename, "--work", JSON.stringify(mine)],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
  });
  const lines = children.map((child) => createInterface(child.stdout)[Symbol.asyncIterator]());
  await Promise.all(lines.map((line) => line.next()));
  for (const child of children) child.stdin.write("go\n");
  const done = await Promise.all(
    lines.map(async (line): Promise<Done> => JSON.parse(String((await line.next()).value)) as Done),
  );
  for (const child of children) child.stdin.end();
  const all = done.flatMap(({ ms }) => ms).toSorted((a, b) => a - b);
  const appends = done.reduce((sum, one) => sum + one.appends, 0);
  return {
    perSecond: Math.round(appends / work.seconds),
    p95Ms: Number((all[Math.floor(all.length * 0.95)] ?? 0).toFixed(1)),
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "3" },
      json: { type: "boolean", default: false },
      work: { type: "string" },
    },
  });
  if (values.work !== undefined) {
    const done = await append(JSON.parse(values.work) as Work);
    process.stdout.write(`${JSON.stringify(done)}\n`);
    process.exit(0);
  }
  const seconds = Number(values.seconds);
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-bench-"));
  await using server = await startPostgres();
  const rows = [];
  try {
    for (const { processes, writers } of CASES) {
      const schema = `b${processes}_${writers}`;
      const on = (kind: string): string => path.join(folder, `${kind}-${schema}`);
      const sqlite = await measure({ home: on("sqlite"), store: undefined, seconds }, processes, writers);
      const store = `${server.url}?schema=${schema}`;
      const postgres = await measure({ home: on("postgres"), store, seconds }, processes, writers);
      rows.push({ processes, writers, sqlite, postgres });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  if (values.json) console.log(JSON.stringify(rows));
  else
    console.table(
      rows.map(({ processes, writers, sqlite, postgres }) => ({
        processes,
        writers,
        "SQLite/s": sqlite.perSecond,
        "p95 ms": sqlite.p95Ms,
        "Postgres/s": postgres.perSecond,
        "p95 ms ": postgres.p95Ms,
      })),
    );
}

await main();
