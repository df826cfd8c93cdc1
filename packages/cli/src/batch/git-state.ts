/**
 * What git says of a workspace. A repository can name programs that git runs, so git never runs in this process's world:
 * each call is inside a read-only sandbox without network, and with every key that names a program switched off as well.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { HeddleError, type RunResult } from "@heddle/protocol";
import { CappedOutput, commandEnvironment, openSandbox, startCommand, type Sandbox } from "@heddle/tools";

type GitReport = NonNullable<RunResult["git"]>;
export type GitState = NonNullable<GitReport["before"]>;
export type Diffstat = NonNullable<GitReport["diffstat"]>;

export interface GitLook {
  readonly workspace: string;
  /** Besides reading everything else: what git must not see either. */
  readonly masked: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** undefined: no repository here. */
export async function gitState(look: GitLook): Promise<GitState | undefined> {
  await using git = await openGit(look);
  return await git.state();
}

export interface GitChange {
  readonly state: GitState | undefined;
  readonly diffstat: Diffstat | undefined;
  /** The patch against the commit the run began with; undefined when it is too long or there is none. */
  readonly patch: Buffer | undefined;
}

export async function gitChange(look: GitLook, before: GitState, wantsPatch: boolean): Promise<GitChange> {
  await using git = await openGit(look);
  const state = await git.state();
  if (state === undefined) return { state, diffstat: undefined, patch: undefined };
  // Without a commit everything is new; git knows the empty tree by this name.
  const base = before.head ?? EMPTY_TREE;
  const shadow = await git.shadowIndex();
  const numstat = await git.run(["diff", ...PLAIN, "--numstat", "-z", base, "--"], shadow);
  const patch = wantsPatch ? await git.run(["diff", ...PLAIN, "--binary", base, "--"], shadow) : undefined;
  return {
    state,
    diffstat: numstat.isOk ? countNumstat(numstat.text()) : undefined,
    patch: patch?.isOk === true && !patch.isCut ? patch.bytes() : undefined,
  };
}

const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const PLAIN = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];

/** `added\tdeleted\tpath\0`; a binary file has dashes for its counts. */
export function countNumstat(text: string): Diffstat {
  const rows = text.split("\0").filter((row) => row !== "");
  const sum = (column: number): number =>
    rows.reduce((total, row) => total + (Number(row.split("\t")[column]) || 0), 0);
  return { files: rows.length, insertions: sum(0), deletions: sum(1) };
}

/** Keys through which a repository, or the person's own configuration, could have a program run. */
const SAFE: Readonly<Record<string, string>> = {
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
  "core.attributesFile": "/dev/null",
  "core.sshCommand": "false",
  "core.untrackedCache": "false",
  "credential.helper": "",
  "diff.external": "",
  "log.showSignature": "false",
  "protocol.ext.allow": "never",
  "safe.bareRepository": "explicit",
  "safe.directory": "*",
  "submodule.recurse": "false",
  "diff.ignoreSubmodules": "all",
};

interface Ran {
  readonly isOk: boolean;
  readonly isCut: boolean;
  text(): string;
  bytes(): Buffer;
}

interface Git extends AsyncDisposable {
  state(): Promise<GitState | undefined>;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran>;
  /** An index and an object store of its own that also know the new files, for the calls that compare. */
  shadowIndex(): Promise<Readonly<Record<string, string>>>;
}

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

async function openGit(look: GitLook): Promise<Git> {
  const { workspace, masked, env, signal, timeoutMs } = look;
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const spill = mkdtempSync(path.join(tmpdir(), "heddle-git-"));
  let sandbox: Sandbox;
  try {
    sandbox = await openSandbox({ workspace, writeRoots: [], masked, network: "none" });
  } catch (error) {
    rmSync(spill, { recursive: true, force: true });
    throw error;
  }
  let safe: Readonly<Record<string, string>> = SAFE;

  async function start(argv: readonly string[], extra: Readonly<Record<string, string>>): Promise<Ran> {
    // Bytes, not text: a patch must come out as it is. So nothing is kept in memory and all of it goes to a file.
    const output = new CappedOutput({
      headBytes: 0,
      tailBytes: 0,
      spillFolder: spill,
      spillQuotaBytes: MAX_OUTPUT_BYTES,
    });
    await using child = await startCommand({
      sandbox,
      // What git says to people does not belong in what it prints for us.
      argv: ["sh", "-c", 'exec "$@" 2>/dev/null', "sh", ...argv],
      cwd: workspace,
      env: { ...commandEnvironment(env), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", ...configured(safe), ...extra },
      stdin: "ignore",
      output,
      signal: deadline,
    });
    const { exitCode } = await child.exited;
    await output.close();
    if (deadline.aborted) throw new HeddleError("tool.timeout", `git did not answer in ${timeoutMs} ms`);
    const { totalBytes, blob, blobError } = output.snapshot();
    if (blobError !== undefined) throw new HeddleError("store.failed", `what git printed was not kept: ${blobError}`);
    const bytes = (): Buffer => (blob === undefined ? Buffer.alloc(0) : readFileSync(path.join(spill, blob)));
    return { isOk: exitCode === 0, isCut: totalBytes > MAX_OUTPUT_BYTES, bytes, text: () => bytes().toString("utf8") };
  }
  const run: Git["run"] = (args, extra = {}) => start(["git", "--no-optional-locks", ...args], extra);
  const filters = await run(["config", "--name-only", "-z", "--get-regexp", "^filter\\."]);
  safe = { ...SAFE, ...withoutFilters(filters.isOk ? filters.text() : "") };

  return {
    run,
    async state() {
      const status = await run(["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"]);
      return status.isOk ? readStatus(status.text()) : undefined;
    },
    async shadowIndex() {
      const found = await run(["rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects"]);
      const [index, objects] = found.isOk ? found.text().split("\n") : [];
      if (index === undefined || objects === undefined) return {};
      // Both live in the sandbox's private /tmp and go with it.
      const shadow = {
        GIT_INDEX_FILE: "/tmp/heddle-index",
        GIT_OBJECT_DIRECTORY: "/tmp/heddle-objects",
        GIT_ALTERNATE_OBJECT_DIRECTORIES: objects,
      };
      const script =
        'mkdir -p "$GIT_OBJECT_DIRECTORY"; cp -- "$1" "$GIT_INDEX_FILE"; exec git add --intent-to-add -- :/';
      const added = await start(["sh", "-c", script, "sh", index], shadow);
      return added.isOk ? shadow : {};
    },
    async [Symbol.asyncDispose]() {
      await sandbox[Symbol.asyncDispose]();
      rmSync(spill, { recursive: true, force: true });
    },
  };
}

/** `# branch.oid …`, `# branch.head …`, then one entry for each thing that differs. */
export function readStatus(text: string): GitState {
  const entries = text.split("\0").filter((entry) => entry !== "");
  const header = (name: string): string | undefined =>
    entries.find((entry) => entry.startsWith(`# ${name} `))?.slice(name.length + 3);
  const head = header("branch.oid");
  const branch = header("branch.head");
  return {
    head: head === undefined || head === "(initial)" ? null : head,
    branch: branch === undefined || branch === "(detached)" ? null : branch,
    is_dirty: entries.some((entry) => !entry.startsWith("# ")),
  };
}

/** Settings as environment, so that no name needs quoting; above every file of configuration. */
function configured(settings: Readonly<Record<string, string>>): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
  const entries = Object.entries(settings);
  for (const [index, [key, value]] of entries.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return { ...env, GIT_CONFIG_COUNT: String(entries.length) };
}

/** Filters are the one thing that no single key switches off. */
function withoutFilters(keys: string): Record<string, string> {
  const off: Record<string, string> = {};
  for (const key of keys.split("\0")) {
    const name = /^filter\.(.+)\.[a-z]+$/s.exec(key)?.[1];
    if (name === undefined) continue;
    for (const part of ["clean", "smudge", "process"]) off[`filter.${name}.${part}`] = "";
    off[`filter.${name}.required`] = "false";
  }
  return off;
}
