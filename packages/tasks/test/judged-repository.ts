/** A real repository that is kept, worked in and frozen, as a task does it, and the git check on what came of it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LeafCheckOf } from "@heddle/protocol";
import type { CheckContext, Finding } from "../src/checks/check.ts";
import { git as gitCheck } from "../src/checks/git.ts";
import { freezeWork } from "../src/tree/freeze-work.ts";
import { keepTree } from "../src/tree/keep-tree.ts";
import type { Change, FrozenWork, KeptTree } from "../src/tree/manifest.ts";

export interface JudgedRepository extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  write(path: string, content: string | Uint8Array): void;
  git(...args: readonly string[]): string;
  /** In the workspace, as an agent would. */
  sh(line: string): void;
  /** Once, before the work. */
  keep(): Promise<KeptTree>;
  freeze(): Promise<FrozenWork>;
  /** On the work as it is now; `picked` are all changes unless it is said otherwise. */
  check(check: Partial<LeafCheckOf<"git">>, pick?: (change: Change) => boolean): Promise<Finding>;
}

export interface JudgedRepositoryOptions {
  readonly files?: Readonly<Record<string, string>>;
  /** The workspace is this folder of the repository. */
  readonly below?: string;
}

export function openJudgedRepository(options: JudgedRepositoryOptions = {}): JudgedRepository {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "heddle-judged-")));
  const top = join(root, "repository");
  const workspace = join(top, options.below ?? "");
  mkdirSync(workspace, { recursive: true });
  const signal = AbortSignal.timeout(60_000);
  const run = (program: string, args: readonly string[]): string =>
    execFileSync(program, args, {
      cwd: workspace,
      encoding: "utf8",
      env: ENVIRONMENT,
      stdio: ["ignore", "pipe", "pipe"],
    });
  const git: JudgedRepository["git"] = (...args) => run("git", args).trim();
  const write: JudgedRepository["write"] = (path, content) => {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  };
  let base: KeptTree | undefined;
  let rounds = 0;
  const keep = async (): Promise<KeptTree> => {
    base ??= await keepTree(workspace, { into: join(root, "home", "base"), skip: [], signal });
    return base;
  };
  const freeze = async (): Promise<FrozenWork> => {
    rounds += 1;
    return await freezeWork(workspace, await keep(), { into: join(root, "home", `work-${rounds}`), skip: [], signal });
  };
  execFileSync("git", ["init", "-q", "-b", "main"], { cwd: top, env: ENVIRONMENT });
  for (const [path, content] of Object.entries(options.files ?? { "a.txt": "a\n", "src/b.txt": "b\n" }))
    write(path, content);
  git("add", "-A", ".");
  git("commit", "-q", "--allow-empty", "-m", "start");
  const began = git("rev-parse", "HEAD");
  return {
    root,
    workspace,
    write,
    git,
    sh: (line) => void run("/bin/sh", ["-ec", line]),
    keep,
    freeze,
    async check(check, pick = () => true) {
      const frozen = await freeze();
      const room = { base: await keep(), frozen, picked: frozen.changes.filter(pick), workspace };
      const context = { room, signal, name: "git", baseline: { git: { commit: began } } };
      // The check looks at nothing else of it.
      return await gitCheck({ kind: "git", ...check }, context as unknown as CheckContext);
    },
    [Symbol.asyncDispose]: async () => rmSync(root, { recursive: true, force: true }),
  };
}

const ENVIRONMENT = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@localhost",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@localhost",
};
