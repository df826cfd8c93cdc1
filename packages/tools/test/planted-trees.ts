/**
 * Random hostile agents in real sandboxes, several runs on one workspace, and a judge that knows nothing of the guard: it asks
 * real git in every folder that git takes for a repository, and compares the protected paths with those of before. As a
 * program: node --conditions=heddle-source planted-trees.ts <first seed> <count> [namespaces|bwrap|none]
 */
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { startCommand } from "../src/commands/process.ts";
import { openSandbox, openUnconfined } from "../src/sandbox/open.ts";
import type { SandboxPolicy } from "../src/sandbox/sandbox.ts";
import { diceOf, plantAtRandom, type Dice } from "./plants.ts";

export interface TreeReport {
  readonly seed: number;
  /** What the owner's git ran, wrote or waited for, and what changed without being told. */
  readonly escapes: readonly string[];
  readonly violations: number;
  readonly repositories: number;
}

export interface TreeOptions {
  readonly backend: "namespaces" | "bwrap" | "none";
  /** Kept between trees: a workspace as an owner has it. */
  readonly template: string;
}

const RUNS = 3;
const PROTECTED =
  /^(?:\.heddle|\.codex|\.agents|\.claude|\.opencode|\.gemini|\.cursor|\.vscode|\.idea|\.devcontainer|\.husky|\.mcp\.json|opencode\.json|\.envrc|\.npmrc|\.bashrc|\.bash_profile|\.zshrc|\.zprofile|\.profile|\.gitconfig|\.gitmodules|\.ripgreprc|\.yarnrc.*)$/i;

export function makeTemplate(): string {
  const template = realpathSync(mkdtempSync(join(tmpdir(), "heddle-template-")));
  const git = (cwd: string, ...args: readonly string[]): void => {
    execFileSync("git", ["-c", "user.name=o", "-c", "user.email=o@o", ...args], { cwd, stdio: "ignore" });
  };
  for (const name of ["src/hooks", ".vscode", "a/b", "vendor/lib", "sub", ".githooks"]) {
    mkdirSync(join(template, name), { recursive: true });
  }
  for (const name of [
    "src/hooks/use.ts",
    ".vscode/settings.json",
    "readme.md",
    ".npmrc",
    "sub/f",
    ".githooks/pre-push",
  ]) {
    writeFileSync(join(template, name), "owner's\n");
  }
  git(template, "init", "-q", "-b", "main");
  git(template, "add", "-A");
  git(template, "commit", "-qm", "first");
  git(template, "init", "-q", "-b", "main", "sub");
  git(join(template, "sub"), "add", "-A");
  git(join(template, "sub"), "commit", "-qm", "first");
  git(template, "init", "-q", "--bare", "bare");
  return template;
}

export async function runTree(seed: number, { backend, template }: TreeOptions): Promise<TreeReport> {
  const dice = diceOf(seed);
  const base = realpathSync(mkdtempSync(join(tmpdir(), "heddle-planted-")));
  const world = prepare(base, template, dice);
  try {
    const before = protectedIn(world.workspace);
    const told = new Set<string>();
    for (let run = 0; run < RUNS; run += 1) for (const path of await hostileRun(world, backend, dice)) told.add(path);
    const { hits, repositories } = await askGit(world);
    const changed = untold({ before, after: protectedIn(world.workspace), told });
    const precious = readFileSync(join(base, "precious"), "utf8") === "owner's\n" ? [] : ["wrote through a link"];
    const outside = readdirSync(join(base, "outside")).map((name) => `made outside: ${name}`);
    return { seed, escapes: [...hits, ...changed, ...precious, ...outside], violations: told.size, repositories };
  } finally {
    execFileSync("chmod", ["-R", "u+rwx", base]);
    execFileSync("rm", ["-rf", base]);
  }
}

interface World {
  readonly base: string;
  readonly workspace: string;
  readonly names: Readonly<Record<string, string>>;
}

function prepare(base: string, template: string, dice: Dice): World {
  const workspace = join(base, "ws");
  cpSync(template, workspace, { recursive: true, verbatimSymlinks: true });
  for (const name of ["marks", "outside"]) mkdirSync(join(base, name));
  writeFileSync(join(base, "precious"), "owner's\n");
  const program = join(workspace, "payload.sh");
  // Inside it cannot write there; outside it can.
  writeFileSync(program, `#!/bin/sh\necho "$0 $* in $PWD" >> '${base}/marks/hit'\n`, { mode: 0o755 });
  const evil = join(workspace, "evil.inc");
  writeFileSync(
    evil,
    `[core]\n\tfsmonitor = ${program}\n\tpager = ${program}\n\teditor = ${program}\n\thooksPath = ${workspace}/hostile-hooks\n[diff]\n\texternal = ${program}\n`,
  );
  mkdirSync(join(workspace, "hostile-hooks"));
  for (const hook of ["pre-commit", "post-checkout"]) cpSync(program, join(workspace, "hostile-hooks", hook));
  // Sometimes more than can be mounted.
  if (dice(25) === 0)
    for (let index = 0; index < 300; index += 1) {
      mkdirSync(join(workspace, `v${index}`));
      writeFileSync(join(workspace, `v${index}/.npmrc`), "owner's\n");
    }
  const names = { P: program, EVIL: evil, OUTSIDE: join(base, "outside"), PRECIOUS: join(base, "precious") };
  return { base, workspace, names };
}

async function hostileRun(
  { base, workspace, names }: World,
  backend: TreeOptions["backend"],
  dice: Dice,
): Promise<string[]> {
  const policy: SandboxPolicy = { workspace, writeRoots: [workspace], masked: [], network: "none" };
  const quarantineDir = join(base, "quarantine");
  const sandbox = backend === "none" ? openUnconfined(policy) : await openSandbox(policy, { backend, quarantineDir });
  const told: string[] = [];
  for (let calls = 1 + dice(2); calls > 0; calls -= 1) {
    const output = new CappedOutput();
    await using command = await startCommand({
      sandbox,
      argv: ["bash", "-c", plantAtRandom(dice)],
      cwd: workspace,
      env: commandEnvironment(process.env, names),
      stdin: "ignore",
      output,
      signal: AbortSignal.timeout(60_000),
    });
    await command.exited;
    await output.close();
    told.push(...(await sandbox.sweep()).map(({ path }) => path));
  }
  told.push(...(await sandbox.close()).map(({ path }) => path));
  return told;
}

/** In every folder with something that git could take for a repository; git decides. */
const ASK = `
export HOME="$1/home" GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true LC_ALL=C
mkdir -p "$HOME"
printf '[user]\\n\\tname = o\\n\\temail = o@o\\n[safe]\\n\\tdirectory = *\\n' > "$HOME/.gitconfig"
count=0
while IFS= read -r -d '' folder; do
  cd -- "$folder" 2>/dev/null || continue
  timeout 10 git rev-parse --git-dir >/dev/null 2>&1 || continue
  count=$((count + 1))
  more='rebase --continue'
  [ -e .gitmodules ] || [ "$folder" = "$1/ws" ] && more="submodule status"
  for ask in 'status' 'diff --stat' 'log -1' 'commit --allow-empty -m x' 'checkout -b by-the-owner' "$more"; do
    timeout 10 git --no-pager $ask </dev/null >/dev/null 2>&1
    [ $? = 124 ] && echo "waited: git $ask in $folder"
  done
done
cd -- "$1/ws" && timeout 10 git rebase --continue </dev/null >/dev/null 2>&1
echo "count $count"
`;

async function askGit({ base, workspace }: World): Promise<{ hits: string[]; repositories: number }> {
  const folders = [...walk(workspace)]
    .filter(({ name }) => /^(?:\.git|head)$/i.test(name))
    .map(({ path }) => path.slice(0, path.lastIndexOf("/")));
  const child = promisify(execFile)("bash", ["-c", ASK, "ask", base], { maxBuffer: 16 * 1024 * 1024 });
  child.child.stdin?.end(
    Buffer.from([...new Set([workspace, ...folders])].map((path) => `${path}\0`).join(""), "latin1"),
  );
  const { stdout } = await child;
  const ran = existsSync(join(base, "marks/hit"))
    ? readFileSync(join(base, "marks/hit"), "utf8").trim().split("\n")
    : [];
  const waited = stdout.split("\n").filter((line) => line.startsWith("waited"));
  return {
    hits: [...ran.map((line) => `ran: ${line}`), ...waited],
    repositories: Number(/count (\d+)/.exec(stdout)?.[1] ?? 0),
  };
}

interface Found {
  readonly path: string;
  readonly name: string;
  readonly parent: string;
}

/** Paths as bytes. */
function* walk(top: string): Generator<Found> {
  const stack = [Buffer.from(top).toString("latin1")];
  for (let folder = stack.pop(); folder !== undefined; folder = stack.pop()) {
    let entries;
    try {
      entries = readdirSync(Buffer.from(folder, "latin1"), { withFileTypes: true, encoding: "latin1" });
    } catch {
      continue;
    }
    for (const entry of entries) {
      const path = `${folder}/${entry.name}`;
      yield { path, name: entry.name, parent: folder.slice(folder.lastIndexOf("/") + 1) };
      if (entry.isDirectory()) stack.push(path);
    }
  }
}

/** Every protected path and everything below it, with its content; hooks and configurations of the owner's repositories too. */
function protectedIn(workspace: string): Map<string, string> {
  const found = new Map<string, string>();
  // Without a HEAD it is nobody's repository.
  const ofGit = existsSync(join(workspace, "bare/HEAD"))
    ? /^(?:\.git|sub\/\.git|bare)\/(?:config|hooks(?:\/.*)?|info(?:\/.*)?)$/
    : /^(?:\.git|sub\/\.git)\/(?:config|hooks(?:\/.*)?|info(?:\/.*)?)$/;
  for (const { path, name, parent } of walk(workspace)) {
    const parts = path.slice(workspace.length + 1).split("/");
    const isNamed = parts.some((part) => PROTECTED.test(part)) || /(?:^|\/)\.github\/workflows(?:\/|$)/i.test(path);
    // A branch may have any name.
    const isBranch = /\/refs\//.test(path) && !name.startsWith(".") && /^[0-9a-f]{40}/.test(beginningOf(path));
    const isOfGit = ofGit.test(parts.join("/"));
    if (
      (isNamed && !isBranch) ||
      isOfGit ||
      (parent === "hooks" && /\/\.git\/hooks\//.test(path) && !name.endsWith(".sample"))
    )
      found.set(path, stateOf(path));
  }
  return found;
}

function beginningOf(path: string): string {
  const raw = Buffer.from(path, "latin1");
  return lstatSync(raw).isFile() ? readFileSync(raw, "latin1") : "";
}

function stateOf(path: string): string {
  const raw = Buffer.from(path, "latin1");
  const stat = lstatSync(raw);
  if (stat.isSymbolicLink()) return `link ${readlinkSync(raw)}`;
  if (stat.isDirectory()) return "folder";
  return stat.isFile() ? createHash("sha256").update(readFileSync(raw)).digest("hex") : "other";
}

interface Compared {
  readonly before: Map<string, string>;
  readonly after: Map<string, string>;
  readonly told: ReadonlySet<string>;
}

/** What is new, or not what it was; a folder may take along what is in it, as it is. */
function untold({ before, after, told }: Compared): string[] {
  const tail = (path: string): string => /[^/]+\/[^/]+$/.exec(path)?.[0] ?? path;
  const known = new Set([...before].map(([path, state]) => `${tail(path)} ${state}`));
  const isTold = (path: string): boolean => {
    const text = Buffer.from(path, "latin1").toString();
    return [...told].some((one) => text === one || text.startsWith(`${one}/`) || one.startsWith(`${text}/`));
  };
  const added = [...after].filter(([path, state]) => !before.has(path) && !known.has(`${tail(path)} ${state}`));
  const changed = [...after].filter(([path, state]) => before.has(path) && before.get(path) !== state && !isTold(path));
  return [...added.map(([path]) => `left: ${path}`), ...changed.map(([path]) => `changed untold: ${path}`)];
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [first = 1, count = 10] = process.argv.slice(2, 4).map(Number);
  const wanted = process.argv[4];
  const backend = wanted === "bwrap" || wanted === "none" ? wanted : "namespaces";
  const print = (line: string): boolean => process.stdout.write(`${line}\n`);
  const template = makeTemplate();
  let [next, bad, violations, repositories] = [first, 0, 0, 0];
  const work = async (): Promise<void> => {
    while (next < first + count) {
      next += 1;
      const report = await runTree(next - 1, { backend, template });
      violations += report.violations;
      repositories += report.repositories;
      if (report.escapes.length > 0) bad += 1;
      for (const escape of report.escapes) print(`seed ${report.seed}: ${escape}`);
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  print(
    `${count} trees from seed ${first}: ${bad} with escapes, ${violations} violations told, ${repositories} repositories asked`,
  );
  execFileSync("rm", ["-rf", template]);
}
