/**
 * Which files of a workspace a check command runs from: words of it that name a file, files its package scripts name, and what
 * make and its kind read. A guess by words; what it misses, the spec can protect by name.
 */
import { posix } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import type { Workspace } from "./workspace.ts";

const MAX_WORDS = 200;
const MAX_SCRIPTS = 20;

export interface CommandWords {
  readonly run: string | readonly string[];
  readonly cwd: string;
}

const RECIPES: Readonly<Record<string, readonly string[]>> = {
  make: ["Makefile", "makefile", "GNUmakefile"],
  just: ["justfile", "Justfile", ".justfile"],
  task: ["Taskfile.yml", "Taskfile.yaml"],
  rake: ["Rakefile"],
};

const PACKAGE_RUNNERS: ReadonlySet<string> = new Set(["npm", "pnpm", "yarn", "bun"]);

export async function filesOfCommand({ run, cwd }: CommandWords, files: Workspace): Promise<readonly string[]> {
  const words = wordsOf(run);
  const found = new Set<string>();
  const own = words.flatMap((word) => RECIPES[posix.basename(word)] ?? []);
  const scripted = (await scriptsOf({ run, cwd }, files)).flatMap(wordsOf);
  for (const word of [...words, ...own, ...scripted].slice(0, MAX_WORDS)) {
    for (const path of candidates(word, cwd, files.root)) if (await isFile(path, files)) found.add(path);
  }
  return [...found];
}

/** The package.json whose scripts it runs. */
export async function manifestsOf({ run, cwd }: CommandWords, files: Workspace): Promise<readonly string[]> {
  if (!wordsOf(run).some((word) => PACKAGE_RUNNERS.has(posix.basename(word)))) return [];
  const path = posix.join(cwd, "package.json");
  return (await isFile(path, files)) ? [path] : [];
}

/** The lines of the scripts that are named, and of those that these name. */
async function scriptsOf(command: CommandWords, files: Workspace): Promise<readonly string[]> {
  const [manifest] = await manifestsOf(command, files);
  if (manifest === undefined) return [];
  const scripts = await readScripts(manifest, files);
  const lines: string[] = [];
  const seen = new Set<string>();
  const open = [...wordsOf(command.run)];
  while (open.length > 0 && seen.size < MAX_SCRIPTS) {
    const name = open.shift() ?? "";
    if (seen.has(name)) continue;
    for (const one of [`pre${name}`, name, `post${name}`]) {
      const line = Object.hasOwn(scripts, one) ? scripts[one] : undefined;
      if (typeof line !== "string") continue;
      seen.add(name);
      lines.push(line);
      open.push(...wordsOf(line));
    }
  }
  return lines;
}

async function readScripts(manifest: string, files: Workspace): Promise<Readonly<Record<string, unknown>>> {
  try {
    const { scripts } = JSON.parse((await files.read(manifest))?.text ?? "{}") as { scripts?: unknown };
    return typeof scripts === "object" && scripts !== null ? { ...scripts } : {};
  } catch {
    return {};
  }
}

function wordsOf(run: string | readonly string[]): readonly string[] {
  return (typeof run === "string" ? [run] : run).flatMap((part) => part.split(/[\s"'`;&|()<>=$]+/)).filter(Boolean);
}

/** What a word can mean: a path, or a module of Python. */
function candidates(word: string, cwd: string, root: string): readonly string[] {
  const inside = word.startsWith(`${root}/`) ? word.slice(root.length + 1) : posix.join(cwd, word);
  if (inside.startsWith("..") || inside.startsWith("/")) return [];
  return /^[\w]+(\.\w+)+$/.test(word) ? [inside, posix.join(cwd, `${word.replaceAll(".", "/")}.py`)] : [inside];
}

async function isFile(path: string, files: Workspace): Promise<boolean> {
  try {
    return (await files.entry(path))?.kind === "file";
  } catch (error) {
    if (isHeddleError(error)) return false;
    throw error;
  }
}
