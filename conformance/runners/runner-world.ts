/**
 * `heddle serve` in a home of its own with agent programs as its runners, and a model for each. Scenarios share it: each has its
 * own workspace and thread. Not in the temporary folder: Codex keeps no helper programs there.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { HeddleClient } from "@heddle/client";
import { heddle } from "../program.ts";
import { startAgentModel, type AgentModel } from "./agent-model.ts";
import { fileOf, versionOf, type Subject } from "./subject.ts";

const PARENT = path.join(homedir(), ".cache", "heddle-conformance");
/** Of another provider, in the environment of Heddle: it is nobody's business. */
export const OTHER_KEY = "sk-other-8c2f4be17a";
const START_MS = 60_000;

export interface Server extends AsyncDisposable {
  readonly client: HeddleClient;
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  kill(): Promise<void>;
}

export interface RunnerWorld extends AsyncDisposable {
  readonly root: string;
  /** Heddle's own. */
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Of the first program, which is the runner of the home. */
  readonly model: AgentModel;
  /** By the names of their runners. */
  readonly models: ReadonlyMap<string, AgentModel>;
  /** A fresh folder with a repository in it. */
  workspace(): Promise<string>;
  serve(): Promise<Server>;
}

export async function openRunnerWorld(first: Subject, ...more: readonly Subject[]): Promise<RunnerWorld> {
  await mkdir(PARENT, { recursive: true });
  const root = await realpath(await mkdtemp(path.join(PARENT, `${first.name}-`)));
  const home = path.join(root, "heddle");
  const model = await startAgentModel(first);
  const models = new Map([[first.name, model]]);
  for (const subject of more) models.set(subject.name, await startAgentModel(subject));
  const all: Record<string, string> = {
    PATH: process.env["PATH"] ?? "",
    HOME: root,
    CODEX_HOME: path.join(root, "codex"),
    HEDDLE_HOME: home,
    LANG: "C.UTF-8",
    OTHER_API_KEY: OTHER_KEY,
  };
  const files: Record<string, string> = {};
  const config = [`runner = ${JSON.stringify(first.name)}`];
  for (const subject of [first, ...more]) {
    const { runner, env, files: own } = subject.setUp({ root, url: models.get(subject.name)?.url ?? "" });
    const table = { protocol: subject.protocol, command: fileOf(subject), version: versionOf(subject), ...runner };
    const lines = Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    config.push(`[runners.${subject.name}]`, ...lines);
    Object.assign(all, env);
    Object.assign(files, own);
  }
  for (const [name, content] of Object.entries({ ...files, "heddle/config.toml": `${config.join("\n")}\n` })) {
    const file = path.join(root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  const servers = new Set<Server>();
  let workspaces = 0;
  return {
    root,
    home,
    env: all,
    model,
    models,
    async workspace() {
      workspaces += 1;
      const folder = path.join(root, `ws-${workspaces}`);
      await mkdir(path.join(folder, ".git"), { recursive: true });
      await writeFile(path.join(folder, ".git", "HEAD"), "ref: refs/heads/main\n");
      return folder;
    },
    async serve() {
      const server = await serve(home, { cwd: root, env: all });
      servers.add(server);
      return server;
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]();
      for (const one of models.values()) await one[Symbol.asyncDispose]();
      if (process.env["HEDDLE_KEEP"] !== undefined) return console.log(`kept: ${root}`);
      await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

async function serve(home: string, where: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }): Promise<Server> {
  const child = spawn(process.execPath, [heddle.file, "serve"], {
    ...where,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "close");
  await serving(child);
  const { url }: { url: string } = JSON.parse(await readFile(path.join(home, "serve.json"), "utf8"));
  const token = (await readFile(path.join(home, "serve.token"), "utf8")).trim();
  async function end(signal: NodeJS.Signals): Promise<void> {
    child.kill(signal);
    await exited;
  }
  return {
    client: new HeddleClient({ url, token }),
    url,
    token,
    pid: child.pid ?? 0,
    kill: () => end("SIGKILL"),
    [Symbol.asyncDispose]: () =>
      child.exitCode === null && child.signalCode === null ? end("SIGTERM") : Promise.resolve(),
  };
}

async function serving(child: ChildProcess): Promise<void> {
  let said = "";
  const seen = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("serving  unix")) seen.resolve();
    });
  }
  child.once("exit", () => seen.reject(new Error(`heddle serve ended: ${said}`)));
  const late = setTimeout(() => seen.reject(new Error(`heddle serve did not start: ${said}`)), START_MS);
  await seen.promise.finally(() => clearTimeout(late));
}
