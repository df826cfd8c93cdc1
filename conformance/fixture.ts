/**
 * A fresh home and workspace for one case, removed with it. Not in the temporary folder: Codex refuses to keep its helper
 * programs there, and its sandbox lets every command write there.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { KEY_NAME, MOCK_CONFIG, type ExecCase } from "./exec-case.ts";
import { DEAD_ADDRESS, type Program } from "./program.ts";

const execute = promisify(execFile);
const PARENT = path.join(homedir(), ".cache", "heddle-conformance");
const LEFT_OVER_AFTER_MS = 60_000;

export interface Fixture extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  /** Fills in the names in braces: `{ws}`, `{url}`… */
  fill(text: string, thread?: string): string;
  /** The way back: values become names in braces. */
  blank(text: string): string;
  /** The content of a file under the root; undefined when there is none. */
  look(name: string): Promise<string | undefined>;
}

type Furniture = Pick<ExecCase, "config" | "files" | "setUp" | "isOutsideGit">;

export async function openFixture(program: Program, url: string, furniture: Furniture = {}): Promise<Fixture> {
  await mkdir(PARENT, { recursive: true });
  const root = await realpath(await mkdtemp(path.join(PARENT, "case-")));
  const [workspace, home] = [path.join(root, "ws"), path.join(root, "codex")];
  const words = {
    "{ws}": workspace,
    "{home}": home,
    "{root}": root,
    "{url}": url,
    "{dead}": DEAD_ADDRESS,
    "{host}": new URL(url).host,
  };
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: root,
    CODEX_HOME: home,
    HEDDLE_HOME: path.join(root, "heddle"),
    LANG: "C.UTF-8",
    [KEY_NAME]: "test-key",
    ...program.env,
  };
  const fixture: Fixture = {
    root,
    workspace,
    env,
    fill: (text, thread = "") =>
      Object.entries({ ...words, "{thread}": thread }).reduce(
        (all, [word, value]) => all.replaceAll(word, value),
        text,
      ),
    blank: (text) => Object.entries(words).reduce((all, [word, value]) => all.replaceAll(value, word), text),
    look: (name) => readFile(path.join(root, name), "utf8").catch(() => undefined),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  };
  await furnish(fixture, furniture);
  return fixture;
}

/** An interrupted Codex may write into its home again after that was removed; no case takes as long as this waits. */
export async function removeOldFixtures(): Promise<void> {
  const names = await readdir(PARENT).catch(() => []);
  for (const folder of names.map((name) => path.join(PARENT, name))) {
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > LEFT_OVER_AFTER_MS) await rm(folder, { recursive: true, force: true });
  }
}

async function furnish(
  fixture: Fixture,
  { config = MOCK_CONFIG, files = {}, setUp, isOutsideGit }: Furniture,
): Promise<void> {
  await mkdir(fixture.workspace);
  for (const [name, content] of Object.entries({ "codex/config.toml": config, ...files })) {
    const file = path.join(fixture.root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, fixture.fill(content));
  }
  const inWorkspace = { cwd: fixture.workspace, env: fixture.env };
  if (isOutsideGit !== true) await execute("git", ["init", "-q", "-b", "main"], inWorkspace);
  if (setUp !== undefined) await execute("sh", ["-ec", fixture.fill(setUp)], inWorkspace);
}
