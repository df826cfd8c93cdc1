/** Does one thing with trees in a process of its own: to be killed at a failpoint, or to be an ordinary user. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { freezeClaim } from "../src/judge/freeze-claim.ts";
import { freezeWork, readFrozenWork } from "../src/tree/freeze-work.ts";
import { keepTree, readKeptTree } from "../src/tree/keep-tree.ts";
import type { FrozenWork, KeptTree, TreeEntry } from "../src/tree/manifest.ts";
import { putBack, putWork } from "../src/tree/put-back.ts";
import { removeTree } from "../src/tree/remove-tree.ts";
import { openRoomFiles } from "../src/tree/room-files.ts";
import { unionTree } from "../src/tree/union-tree.ts";
import { bytes, chanceOf, change, differences, entriesOf, hashOf, makeTree, type Looked } from "./random-trees.ts";

const { signal } = new AbortController();
const [what, root = "", first = "0", last = "0"] = process.argv.slice(2);
const workspace = join(root, "workspace");
const task = join(root, "rooms", "task");

// Some are killed before they end.
flushCompileCache();
try {
  await doIt();
} catch (error) {
  say(isHeddleError(error) ? `${error.code}: ${error.details["path"] ?? ""}` : String(error));
  process.exitCode = 1;
}

async function doIt(): Promise<void> {
  switch (what) {
    case "keep":
      await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
      return;
    case "freeze":
      await freezeWork(workspace, await kept(), { into: join(task, "work"), skip: [], signal });
      return;
    case "undo":
      await putBack(workspace, await kept(), { dir: task, signal });
      return;
    case "apply": {
      const work = await frozen();
      await putWork(workspace, work, work.changes, { dir: task, base: await kept(), signal });
      return;
    }
    case "closed":
      await closedEntries();
      return;
    case "shut":
      await shutWorkspace();
      return;
    case "full":
      await fullDisk();
      return;
    case "random":
      await randomTrees(Number(first), Number(last));
      return;
    default:
      throw new Error(`no such thing: ${what}`);
  }
}

/** What the owner of a tree has closed to himself, wanted and not. */
async function closedEntries(): Promise<void> {
  mkdirSync(join(workspace, "old"), { recursive: true });
  writeFileSync(join(workspace, "a.js"), "a");
  writeFileSync(join(workspace, "old/b.js"), "b");
  const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
  for (const name of ["secret", "a.js"]) writeFileSync(join(workspace, name), "changed");
  for (const name of ["secret", "old"]) chmodSync(join(workspace, name), 0);
  const cases = [{ wanted: (path: string) => path === "a.js", wantedBelow: () => false }, {}];
  for (const options of cases) {
    try {
      const { changes } = await freezeWork(workspace, base, { ...options, into: join(task, "work"), skip: [], signal });
      for (const { path, how, isLeftOut, now } of changes)
        say(`${how} ${path} ${isLeftOut === true ? "left out" : "kept"} ${now?.sha256.length}`);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
    chmodSync(join(workspace, "old"), 0o755);
  }
}

/** An agent has closed the workspace itself: its work is frozen all the same, and undone with the mode it had. */
async function shutWorkspace(): Promise<void> {
  mkdirSync(join(workspace, "src"), { recursive: true });
  writeFileSync(join(workspace, "src/a.js"), "a");
  chmodSync(workspace, 0o750);
  await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
  writeFileSync(join(workspace, "src/a.js"), "changed");
  for (const mode of [0, 0o111, 0o444]) {
    const spec = TaskSpec.parse({ name: "t", goal: "g", workspace });
    chmodSync(workspace, mode);
    const at = { folder: workspace, home: root, spec, signal };
    const { changes } = await freezeClaim(at, { id: "task", round: mode + 1 }, await kept());
    chmodSync(workspace, mode);
    const undone = await putBack(workspace, await kept(), { dir: task, signal });
    say(`${changes.map(({ path }) => path).join()} frozen, ${undone.length} undone`);
    say(`${(statSync(workspace).mode & 0o777).toString(8)} ${readFileSync(join(workspace, "src/a.js"), "utf8")}`);
    writeFileSync(join(workspace, "src/a.js"), "changed");
  }
}

/** In a mount namespace of its own: the workspace has room for half of what comes back. */
async function fullDisk(): Promise<void> {
  mkdirSync(workspace, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", workspace]);
  for (const name of ["a", "b", "c"]) writeFileSync(join(workspace, name), name.repeat(200_000));
  const before = entriesOf(workspace);
  const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
  for (const name of ["a", "b", "c"]) rmSync(join(workspace, name));
  const hog = join(workspace, "hog");
  writeFileSync(hog, Buffer.alloc(700_000));
  const worked = entriesOf(workspace);
  await putBack(workspace, { ...base, skipped: ["hog"] }, { dir: task, signal }).catch((error: unknown) => {
    say(isHeddleError(error) ? `${error.code}: ` : String(error));
  });
  requireSame("the workspace that has no room", entriesOf(workspace), worked, true);
  say("as before");
  rmSync(hog);
  await putBack(workspace, base, { dir: task, signal });
  requireSame("the workspace", entriesOf(workspace), before, true);
  say("as kept");
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function kept(): Promise<KeptTree> {
  const tree = await readKeptTree(join(task, "base"));
  if (tree === undefined) throw new Error("there is no kept tree");
  return tree;
}

async function frozen(): Promise<FrozenWork> {
  const work = await readFrozenWork(join(task, "work"));
  if (work === undefined) throw new Error("there is no frozen work");
  return work;
}

/** Prints one line for each tree that did not come out as it should. */
async function randomTrees(from: number, to: number): Promise<void> {
  let changes = 0;
  for (let seed = from; seed < to; seed += 1) {
    const here = join(root, String(seed));
    mkdirSync(here);
    try {
      changes += await oneTree(seed, here);
    } catch (error) {
      say(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`);
    }
    await removeTree(here, signal);
  }
  say(`done: ${to - from} trees, ${changes > 0 ? "with" : "without"} changes`);
}

async function oneTree(seed: number, here: string): Promise<number> {
  const chance = chanceOf(seed);
  const root = join(here, "w");
  const dir = join(here, "task");
  makeTree(root, chance);
  const before = entriesOf(root);
  const made = await keepTree(root, { into: join(dir, "base"), skip: [], signal });
  requireSame("the kept tree", entriesOf(made.folder), before, true);
  change(root, chance);
  const after = entriesOf(root);
  const base = await readKeptTree(join(dir, "base"));
  if (base === undefined || base.sha256 !== made.sha256) throw new Error("the kept tree reads otherwise");
  const work = await freezeWork(root, base, { into: join(dir, "work"), skip: [], signal });
  requireSame("the union", unionOf(base, work, root), after, false);
  await requireContent(base, work, { root, after });
  await putBack(root, base, { dir, signal });
  requireSame("the undone tree", entriesOf(root), before, true);
  if ((await putBack(root, base, { dir, signal })).length > 0) throw new Error("a second undo finds something");
  await putWork(root, work, work.changes, { dir, base, signal });
  requireSame("the applied tree", entriesOf(root), after, false);
  const again = await keepTree(root, { into: join(dir, "base2"), skip: [], like: base, signal });
  requireSame("the tree kept like another", entriesOf(again.folder), entriesOf(root), true);
  return work.changes.length;
}

function unionOf(base: KeptTree, work: FrozenWork, root: string): Looked[] {
  const tree = unionTree(base.manifest, work.changes, root);
  const found: Looked[] = [];
  const go = (folder: string): void => {
    for (const name of tree.names(folder)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const entry = tree.get(path);
      if (entry === undefined) continue;
      found.push({
        path,
        kind: entry.kind,
        mode: entry.kind === "link" ? 0 : entry.mode,
        content: contentOf(entry),
        mtimeMs: 0,
      });
      if (entry.kind === "folder") go(path);
    }
  };
  go("");
  return found;
}

function contentOf({ kind, sha256, target }: TreeEntry): string {
  return kind === "link" ? (target ?? "") : sha256;
}

async function requireContent(
  base: KeptTree,
  work: FrozenWork,
  { root, after }: { readonly root: string; readonly after: readonly Looked[] },
): Promise<void> {
  const files = openRoomFiles(base, { frozen: work, picked: work.changes }, { root, signal });
  for (const { path, kind } of after) {
    const text = Buffer.from(path, "latin1").toString("utf8");
    // oxlint-disable-next-line no-control-regex -- paths of checks have none
    if (kind !== "file" || Buffer.from(text, "utf8").toString("latin1") !== path || /[\u0000-\u001f]/.test(text))
      continue;
    const read = await files.read(text);
    if (read?.sha256 !== hashOf(readFileSync(bytes(`${root}/${path}`)))) throw new Error(`${text} reads otherwise`);
  }
}

function requireSame(what: string, found: readonly Looked[], wanted: readonly Looked[], withTimes: boolean): void {
  const wrong = differences(found, wanted, { withTimes });
  if (wrong.length > 0) throw new Error(`${what} differs:\n${wrong.slice(0, 10).join("\n")}`);
}
