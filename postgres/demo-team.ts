/**
 * `npm run demo:team`: two servers and three workers at one real Postgres, ten tasks with a scripted model, and one
 * worker killed in the middle. Ends with every task verified once and the record clean, or with exit code 1. Everything is in
 * one folder below that of the system for temporary files, and is removed at the end.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openJournal } from "@heddle/journal";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { counted } from "@heddle/protocol";
import { installPostgres } from "./install.ts";
import { startPostgres } from "./server.ts";

const TASKS = 10;
const WORKERS = ["loom-1", "loom-2", "loom-3"] as const;
const SERVERS = ["door-1", "door-2"] as const;
const KILLED = "loom-2";
const DEADLINE_MS = 120_000;
const ROOT = path.join(import.meta.dirname, "..");
const LAUNCHER = path.join(ROOT, "packages", "cli", "bin", "heddle.cjs");

const begun = performance.now();
const say = (line: string): void => {
  process.stdout.write(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(5)} s  ${line}\n`);
};

interface Program extends AsyncDisposable {
  readonly name: string;
  readonly home: string;
  readonly child: ChildProcess;
  sees(text: string): Promise<void>;
}

interface Team {
  readonly folder: string;
  readonly store: string;
  readonly model: ModelServer;
}

async function main(): Promise<number> {
  await using ends = new AsyncDisposableStack();
  installPostgres();
  const postgres = ends.use(await startPostgres());
  say(`Postgres listens on 127.0.0.1:${postgres.port}`);
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-team-"));
  ends.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const model = ends.use(await startModelServer({ respond: ({ body }) => answerTo(folder, JSON.stringify(body)) }));
  const team = { folder, store: `${postgres.url}?schema=team`, model };
  // The first makes the tables; then the others need not wait for it.
  const [first, ...others] = SERVERS;
  const doors = [await openDoor(team, first)];
  doors.push(...(await Promise.all(others.map((name) => openDoor(team, name)))));
  for (const { program } of doors) ends.use(program);
  const workers = await Promise.all(WORKERS.map((name) => openWorker(team, name)));
  for (const worker of workers) ends.use(worker);
  say(`${SERVERS.join(" and ")} serve, ${WORKERS.join(", ")} take tasks, two at a time`);

  const ids: string[] = [];
  for (let number = 1; number <= TASKS; number += 1) {
    const door = doors[number % doors.length];
    if (door !== undefined) ids.push(await door.add(await workspaceOf(folder, number), number));
  }
  say(`${ids.length} tasks are ordered, at one door and the other`);
  await using journal = await openJournal({ home: path.join(folder, "looking"), store: team.store });
  const victim = workers.find(({ name }) => name === KILLED);
  const held = await until(async () => {
    const mine = (await journal.tasks.held()).filter(({ holder }) => holder?.pid === victim?.child.pid);
    return mine.length > 0 ? mine : undefined;
  });
  victim?.child.kill("SIGKILL");
  say(`${KILLED} is killed with kill -9 while it holds ${held.map(({ spec }) => spec.name).join(" and ")}`);
  const last = doors.at(-1);
  await until(async () => {
    const counts = await journal.tasks.counts();
    return (counts.verified ?? 0) + (counts.failed ?? 0) + (counts.paused ?? 0) === ids.length ? true : undefined;
  });
  const rows: string[] = [];
  let wrong = 0;
  for (const id of ids) {
    const events = await journal.read({ stream: id, after: 0 });
    const count = (type: string): number => events.filter(({ body }) => body.type === type).length;
    const task = await journal.tasks.get(id);
    if (count("task.verified") !== 1 || task?.state !== "verified") wrong += 1;
    const why = task?.state === "verified" ? "" : ` (${task?.reason ?? "no reason"})`;
    rows.push(`${task?.spec.name}: ${task?.state}${why}, taken by ${counted(count("task.taken"), "worker")}`);
  }
  for (const row of rows) say(row);
  say(`${last?.program.name ?? ""} shows ${await last?.verified()} verified tasks`);
  const { damage, violations, events } = await journal.verify();
  say(`the record: ${events} events, ${damage.length} damaged, ${violations.length} violations`);
  for (const { program } of doors) program.child.kill("SIGTERM");
  for (const worker of workers) worker.child.kill("SIGTERM");
  const isClean = wrong === 0 && damage.length === 0 && violations.length === 0;
  say(isClean ? "every task is verified once, and the record is clean" : "this is not what was to be shown");
  return isClean ? 0 : 1;
}

type Step = { readonly text: string } | { readonly calls: readonly { tool: string; args: { cmd: string } }[] };

/** The goal names a file. Slow enough that a worker can be killed in the middle; then the next one begins it anew. */
function answerTo(folder: string, body: string): Step {
  const number = /make piece-(\d+)\.txt/.exec(body)?.[1] ?? "";
  const file = `piece-${number}.txt`;
  if (existsSync(path.join(folder, `workspace-${number}`, file))) return { text: "It is done." };
  return { calls: [{ tool: "exec_command", args: { cmd: `sleep 1; echo woven > ${file}` } }] };
}

async function workspaceOf(folder: string, number: number): Promise<string> {
  const workspace = path.join(folder, `workspace-${number}`);
  await mkdir(workspace, { recursive: true });
  return workspace;
}

async function openDoor(team: Team, name: string) {
  const program = await start(team, name, ["serve", "--role", "server", "--name", name]);
  await program.sees("token    ");
  const { url } = JSON.parse(await readFile(path.join(program.home, "serve.json"), "utf8")) as { readonly url: string };
  const token = (await readFile(path.join(program.home, "serve.token"), "utf8")).trim();
  const call = async (method: string, where: string, body?: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(`${url}${where}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${where}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  return {
    program,
    async add(workspace: string, number: number): Promise<string> {
      const file = `piece-${number}.txt`;
      const spec = { name: `piece ${number}`, workspace, goal: `make ${file}`, checks: [{ "file-exists": file }] };
      const { id } = (await call("POST", "/api/tasks", { spec })) as { readonly id: string };
      return id;
    },
    async verified(): Promise<number> {
      const { data } = (await call("GET", "/api/tasks?state=verified")) as { readonly data: readonly unknown[] };
      return data.length;
    },
  };
}

async function openWorker(team: Team, name: string): Promise<Program> {
  const program = await start(team, name, ["worker", "--name", name, "--concurrency", "2"]);
  await program.sees("takes tasks");
  return program;
}

async function start({ folder, store, model }: Team, name: string, args: readonly string[]): Promise<Program> {
  const home = path.join(folder, name);
  await mkdir(home, { recursive: true });
  const provider = `[model_providers.demo]\nbase_url = "${model.url}/v1"\nenv_key = "DEMO_KEY"\n`;
  await writeFile(path.join(home, "config.toml"), `model = "gpt-5.5"\nmodel_provider = "demo"\n${provider}`);
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, HEDDLE_HOME: home, HEDDLE_STORE: store, DEMO_KEY: "none" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let onText: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      onText();
    });
  const ended = once(child, "exit");
  return {
    name,
    home,
    child,
    async sees(text) {
      const found = new Promise<boolean>((resolve) => {
        onText = () => {
          if (said.includes(text)) resolve(true);
        };
        onText();
      });
      if ((await Promise.race([found, ended])) !== true) throw new Error(`${name} ended: ${said}`);
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await Promise.race([ended, delay(8_000)]);
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  while (performance.now() - begun < DEADLINE_MS) {
    const found = await look();
    if (found !== undefined) return found;
    await delay(50);
  }
  throw new Error("it did not come about in time");
}

process.exitCode = await main();
