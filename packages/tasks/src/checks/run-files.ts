/**
 * Which files of a workspace a check command runs from: words of it that name a file, files its package scripts name, and what
 * make and its kind read. A guess by words; what it misses, the spec can protect by name.
 */
import { posix } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import type { Workspace } from "./workspace.ts";

const MAX_WORDS = 200;
const MAX_SCRIPTS = 20;
const MAX_FOLDERS = 5;

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

export async function filesOfCommand(command: CommandWords, files: Workspace): Promise<readonly string[]> {
  const words = wordsOf(command.run);
  const own = words.flatMap((word) => RECIPES[posix.basename(word)] ?? []);
  const found = new Set<string>();
  for (const folder of await foldersOf(command, files)) {
    const scripted = (await scriptsIn(folder, words, files)).flatMap(wordsOf);
    for (const word of [...words, ...own, ...scripted].slice(0, MAX_WORDS)) {
      for (const path of candidates(word, folder, files.root)) {
        if ((await kindOf(path, files)) === "file") found.add(path);
      }
    }
  }
  return [...found];
}

/** Every package.json whose scripts it may run. */
export async function manifestsOf(command: CommandWords, files: Workspace): Promise<readonly string[]> {
  if (!wordsOf(command.run).some((word) => PACKAGE_RUNNERS.has(posix.basename(word)))) return [];
  const found: string[] = [];
  for (const folder of await foldersOf(command, files)) {
    const path = posix.join(folder, "package.json");
    if ((await kindOf(path, files)) === "file") found.push(path);
  }
  return found;
}

/** Where it may work: its own folder, and those it names, as in `cd lib && npm test` and `npm test -w packages/a`. */
async function foldersOf({ run, cwd }: CommandWords, files: Workspace): Promise<readonly string[]> {
  const folders = new Set([cwd]);
  for (const word of wordsOf(run).slice(0, MAX_WORDS)) {
    for (const path of candidates(word, cwd, files.root)) {
      if (folders.size < MAX_FOLDERS && (await kindOf(path, files)) === "directory") folders.add(path);
    }
  }
  return [...folders];
}

/** The lines of the scripts that are named, and of those that these name. */
async function scriptsIn(folder: string, words: readonly string[], files: Workspace): Promise<readonly string[]> {
  if (!words.some((word) => PACKAGE_RUNNERS.has(posix.basename(word)))) return [];
  const scripts = await readScripts(posix.join(folder, "package.json"), files);
  const lines: string[] = [];
  const seen = new Set<string>();
  const open = [...words];
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

async function kindOf(path: string, files: Workspace): Promise<string | undefined> {
  try {
    return (await files.entry(path))?.kind;
  } catch (error) {
    // A word that cannot be a path of the workspace names nothing in it.
    if (isHeddleError(error)) return undefined;
    throw error;
  }
}
