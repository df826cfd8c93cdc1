/**
 * Where random agents work: a project as it was, a workspace that is made anew for each of them, and Heddle's own folders with
 * the beginning kept once. The oracle runs the commands of the checks as plain processes at the path of the workspace, on the
 * beginning with exactly some of what the agent left; it shares nothing with the product.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TaskBaseline } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";
import { takeBaseline } from "../../src/attempt/baseline.ts";
import type { CheckOptions } from "../../src/checks/check.ts";
import { readBase } from "../../src/judge/freeze-claim.ts";
import type { KeptTree } from "../../src/tree/manifest.ts";
import { bytes, entriesOf, type Looked } from "../random-trees.ts";
import { checksOf, type Project, type Run } from "./project.ts";

const COMMAND_MS = 60_000;

export interface Stage extends Disposable {
  readonly project: Project;
  readonly root: string;
  readonly workspace: string;
  readonly home: string;
  /** The workspace as it was; nobody writes there. */
  readonly pristine: string;
  readonly baseline: TaskBaseline;
  readonly base: KeptTree;
  checkOptionsFor(spec: Partial<TaskSpecInput>): CheckOptions;
}

export async function openStage(project: Project): Promise<Stage> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "heddle-cheats-")));
  const [pristine, workspace, home] = [join(root, "pristine"), join(root, "workspace"), join(root, "home")];
  for (const folder of [pristine, home, join(root, "out")]) mkdirSync(folder);
  begin(project, pristine);
  copyTree(pristine, workspace);
  const { signal } = new AbortController();
  const checkOptionsFor: Stage["checkOptionsFor"] = (spec) => ({
    folder: workspace,
    home,
    signal,
    spec: TaskSpec.parse({ name: "a task", workspace, goal: "fix it", ...spec }),
  });
  const { commands, named } = checksOf(project);
  const all = checkOptionsFor({ checks: [...commands, ...named] });
  const baseline = await takeBaseline(all, { into: join(home, "rooms", "task_1", "base") });
  if (baseline.passed.length > 0) throw new Error(`${project.language}: ${baseline.passed.join(", ")} passes at once`);
  const base = await readBase(home, { id: "task_1" }, baseline);
  return {
    project,
    root,
    workspace,
    home,
    pristine,
    baseline,
    base,
    checkOptionsFor,
    [Symbol.dispose]: () => removeTree(root),
  };
}

function begin({ files, links = {} }: Project, folder: string): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content, { mode: path.startsWith("tools/") ? 0o755 : 0o644 });
  }
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(target, join(folder, path));
  }
  const own = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
  for (const args of [
    ["init", "-q", "-b", "main", "--template="],
    ["add", "-A"],
    [...own, "commit", "-q", "-m", "start"],
  ]) {
    const { status, stderr } = spawnSync("git", args, { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  }
}

/** With times, modes, links and odd names. */
export function copyTree(from: string, to: string): void {
  const { status, stderr } = spawnSync("cp", ["-a", "--", from, to], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

export function removeTree(folder: string): void {
  spawnSync("chmod", ["-R", "u+rwX", folder], { stdio: "ignore" });
  spawnSync("rm", ["-rf", "--", folder]);
}

/** The same folder, filled anew. */
export function resetWorkspace({ workspace, pristine }: Stage): void {
  removeTree(workspace);
  copyTree(pristine, workspace);
}

/** What is not as it was, by path, one character for each byte; folders left out. */
export function changedPaths(now: string, before: string): readonly string[] {
  const told = (entries: readonly Looked[]): Map<string, string> =>
    new Map(
      entries
        .filter(({ kind }) => kind !== "folder")
        .map(({ path, kind, mode, content }) => [path, JSON.stringify([kind, mode, content])]),
    );
  const [one, other] = [told(entriesOf(now)), told(entriesOf(before))];
  return [...new Set([...one.keys(), ...other.keys()])].filter((path) => one.get(path) !== other.get(path)).toSorted();
}

/** Whether all commands end with zero on the beginning with what `isPicked` takes of the agent's tree. */
export function oracle(stage: Stage, left: string, isPicked: (path: string) => boolean): boolean {
  const { workspace, pristine } = stage;
  const aside = join(stage.root, "aside");
  renameSync(workspace, aside);
  try {
    copyTree(pristine, workspace);
    const picked = changedPaths(left, pristine).filter((path) => isPicked(path) && !path.startsWith(".git/"));
    for (const path of picked) rmSync(bytes(`${workspace}/${path}`), { recursive: true, force: true });
    const there = new Set(entriesOf(left).map(({ path }) => path));
    for (const path of picked) if (there.has(path)) bring(left, workspace, path);
    return stage.project.commands.every((run) => succeeds(workspace, run));
  } finally {
    removeTree(workspace);
    renameSync(aside, workspace);
  }
}

/** Links as links. What lies behind a link is not at its path. */
function bring(left: string, workspace: string, path: string): void {
  const [from, to] = [bytes(`${left}/${path}`), bytes(`${workspace}/${path}`)];
  mkdirSync(bytes(dirname(`${workspace}/${path}`)), { recursive: true });
  const stat = lstatSync(from);
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from, "buffer"), to);
  if (!stat.isFile()) return;
  copyFileSync(from, to);
  chmodSync(to, stat.mode & 0o7777);
  utimesSync(to, stat.atime, stat.mtime);
}

/** As a plain process, without anything of Heddle. */
export function succeeds(folder: string, { run, cwd = "." }: Run): boolean {
  const [program = "", ...args] = typeof run === "string" ? ["/bin/sh", "-c", run] : run;
  const { PATH, HOME, TMPDIR } = process.env;
  const env = { PATH, HOME, TMPDIR, CI: "true" };
  return spawnSync(program, args, { cwd: join(folder, cwd), env, stdio: "ignore", timeout: COMMAND_MS }).status === 0;
}
