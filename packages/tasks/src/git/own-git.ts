/**
 * A git directory of Heddle's own, where no agent can write: its configuration, refs and index are made here, and only
 * objects are read from other repositories. So no setting, attribute, filter, replacement or index of a judged repository
 * affects its answers.
 */
import { symlinkSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { runGit, outputOf, type GitEnd, type GitRun } from "./run-git.ts";

export interface OwnGit extends AsyncDisposable {
  readonly folder: string;
  /** Throws `tool.failed` with what git printed. */
  run(args: readonly string[], options?: OwnRun): Promise<Buffer>;
  try(args: readonly string[], options?: OwnRun): Promise<GitEnd>;
}

export interface OwnRun {
  readonly input?: GitRun["input"];
  /** Files that the command looks at; none when absent. */
  readonly workTree?: string;
}

export interface OwnGitOptions {
  /** Must not exist. */
  readonly folder: string;
  /** Where objects are read besides its own. */
  readonly objects: readonly ObjectFolder[];
  /** Names under `refs/` with their commits. */
  readonly refs?: ReadonlyMap<string, string>;
  /** Ignore patterns, as in `info/exclude`. */
  readonly exclude?: Uint8Array;
  readonly format: ObjectFormat;
  readonly signal: AbortSignal;
}

export type ObjectFormat = "sha1" | "sha256";

/** The parts of an `objects` folder that hold objects, without its `info`. */
export interface ObjectFolder {
  /** `pack` and the loose folders (`00` to `ff`), with their paths. */
  readonly parts: ReadonlyMap<string, string>;
}

export async function openOwnGit(options: OwnGitOptions): Promise<OwnGit> {
  const { folder, signal } = options;
  for (const name of ["objects/info", "objects/pack", "refs/heads", "info"]) {
    await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  }
  await writeFile(join(folder, "config"), configFor(options.format));
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/heddle\n");
  await writeFile(join(folder, "info", "exclude"), options.exclude ?? "");
  await writeFile(join(folder, "packed-refs"), packedRefs(options.refs ?? new Map()));
  await writeFile(join(folder, "objects", "info", "alternates"), await shelves(folder, options.objects));
  const git = (args: readonly string[], { input, workTree }: OwnRun = {}): Promise<GitEnd> =>
    runGit({
      cwd: workTree ?? folder,
      env: environment(folder, workTree),
      args: ["--no-optional-locks", "--no-pager", ...args],
      ...(input === undefined ? {} : { input }),
      signal,
    });
  return {
    folder,
    try: git,
    async run(args, run) {
      const end = await git(args, run);
      if (end.exitCode === 0) return end.stdout;
      throw new HeddleError("tool.failed", `git ${args[0] ?? ""}: ${outputOf(end)}`);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Turns off everything that git does for users who work in a repository. */
function configFor(format: ObjectFormat): string {
  const lines = [
    "[core]",
    `\trepositoryformatversion = ${format === "sha1" ? 0 : 1}`,
    "\tbare = true",
    "\thooksPath = /dev/null",
    "\tattributesFile = /dev/null",
    "\texcludesFile = /dev/null",
    "\tfsmonitor = false",
    "\tcommitGraph = false",
    "\tquotePath = false",
    "[gc]",
    "\tauto = 0",
    "[maintenance]",
    "\tauto = false",
    "[protocol]",
    "\tallow = never",
    '[protocol "file"]',
    "\tallow = always",
  ];
  if (format === "sha256") lines.push("[extensions]", "\tobjectFormat = sha256");
  return `${lines.join("\n")}\n`;
}

function environment(folder: string, workTree: string | undefined): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    LC_ALL: "C.UTF-8",
    // No version of git looks for a configuration outside this folder.
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_NO_LAZY_FETCH: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_EDITOR: "true",
    GIT_CEILING_DIRECTORIES: folder,
    GIT_DIR: folder,
    ...(workTree === undefined ? {} : { GIT_WORK_TREE: workTree }),
  };
}

function packedRefs(refs: ReadonlyMap<string, string>): string {
  const names = [...refs.keys()].toSorted();
  return names.map((name) => `${refs.get(name)} ${name}\n`).join("");
}

/** Alternates without `info`: git would follow the alternates of an alternate. */
async function shelves(folder: string, objects: readonly ObjectFolder[]): Promise<string> {
  const lines: string[] = [];
  for (const [index, { parts }] of objects.entries()) {
    const shelf = join(folder, "shelves", String(index));
    await mkdir(shelf, { recursive: true });
    // Some hundred short calls; waiting for each takes ten times as long.
    for (const [name, target] of parts) symlinkSync(target, join(shelf, name));
    lines.push(`${shelf}\n`);
  }
  return lines.join("");
}
