/** The programs that are compared. Each gets the same scripted server, a home of its own and the same workspace. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Subject {
  readonly name: string;
  /** What to spawn for `exec PROMPT` with JSON lines and a sandbox that may write the workspace. */
  argv(prompt: string): readonly string[];
  /** What to spawn for its app-server on standard streams. */
  readonly server: readonly string[];
  /** The same, collecting its garbage when it is told to; absent: it makes none. */
  readonly collectingServer?: readonly string[];
  /** What to spawn for its HTTP door; Codex has none. */
  readonly serve?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface SubjectOptions {
  /** Folder for homes; not under the temporary folder, because Codex refuses that. */
  readonly root: string;
  readonly serverUrl: string;
}

const REPOSITORY = join(import.meta.dirname, "..");
const COLLECTOR = join(import.meta.dirname, "collect-garbage-worker.ts");
const CODEX = join(REPOSITORY, "conformance", "node_modules", "@openai", "codex", "bin", "codex.js");

/** Heddle always; Codex when `npm run conformance` has installed it. */
export async function openSubjects(options: SubjectOptions): Promise<readonly Subject[]> {
  const subjects = [await openHeddle(options)];
  if (existsSync(CODEX)) subjects.push(await openCodex(options));
  return subjects;
}

async function openHeddle({ root, serverUrl }: SubjectOptions): Promise<Subject> {
  const home = join(root, "heddle-home");
  await writeConfig(home, serverUrl);
  const launcher = await installHeddle(join(root, "heddle"));
  return {
    name: "heddle",
    argv: (prompt) => [process.execPath, launcher, "exec", "--json", "-s", "workspace-write", prompt],
    server: [process.execPath, launcher, "app-server"],
    collectingServer: [process.execPath, "--expose-gc", "--import", COLLECTOR, launcher, "app-server"],
    serve: [process.execPath, launcher, "serve"],
    env: { HOME: await emptyHome(root), HEDDLE_HOME: home, MOCK_KEY: "bench" },
  };
}

/** As its package holds it, without sources: in a checkout every start also looks whether the bundle is older than they are. */
async function installHeddle(folder: string): Promise<string> {
  const cli = join(REPOSITORY, "packages", "cli");
  execFileSync(process.execPath, [join(REPOSITORY, "scripts", "build.ts"), "--quiet"], { stdio: "inherit" });
  const { files } = JSON.parse(await readFile(join(cli, "dist", "build-stamp.json"), "utf8")) as { files: string[] };
  for (const file of [
    join("bin", "heddle.cjs"),
    "package.json",
    ...["build-stamp.json", ...files].map((name) => join("dist", name)),
  ]) {
    await cp(join(cli, file), join(folder, file));
  }
  return join(folder, "bin", "heddle.cjs");
}

async function openCodex({ root, serverUrl }: SubjectOptions): Promise<Subject> {
  const home = join(root, "codex-home");
  await writeConfig(home, serverUrl);
  return {
    name: "codex",
    argv: (prompt) => [process.execPath, CODEX, "exec", "--json", "-s", "workspace-write", prompt],
    server: [process.execPath, CODEX, "app-server"],
    env: { HOME: await emptyHome(root), CODEX_HOME: home, MOCK_KEY: "bench" },
  };
}

/** Login shells read what a person keeps there, and may go on with it behind a program that has ended. */
async function emptyHome(root: string): Promise<string> {
  const home = join(root, "home");
  await mkdir(home, { recursive: true });
  return home;
}

/** Both read the same keys. */
async function writeConfig(home: string, serverUrl: string): Promise<void> {
  await mkdir(home, { recursive: true });
  const lines = [
    `model = "gpt-5.5"`,
    `model_provider = "mock"`,
    "",
    "[model_providers.mock]",
    `name = "mock"`,
    `base_url = "${serverUrl}/v1"`,
    `env_key = "MOCK_KEY"`,
    `wire_api = "responses"`,
    "",
  ];
  await writeFile(join(home, "config.toml"), lines.join("\n"));
}
