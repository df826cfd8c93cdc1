import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { claimStore } from "@heddle/agent/store-claim";
import { chanceOf, change, differences, entriesOf, makeTree, type Looked } from "../../test/random-trees.ts";
import { freezeWork, readFrozenWork } from "./freeze-work.ts";
import { keepTree, readKeptTree } from "./keep-tree.ts";
import { claimFolder, finishPutting, putBack, resumePutting } from "./put-back.ts";
import { removeTree } from "./remove-tree.ts";

const CHILD = join(inject("children"), "tree-in-child.mjs");
const NOBODY = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const canStepDown = isRoot && spawnSync(process.execPath, ["--check", CHILD], NOBODY).status === 0;
const canMount = isRoot && spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;
const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const TMPFS = 0x01021994;
const { signal } = new AbortController();

/** In memory where there is some: what is synced there costs nothing. */
function scratch(): AsyncDisposable & { readonly path: string } {
  const isFast = existsSync("/dev/shm") && statfsSync("/dev/shm").type === TMPFS;
  const path = mkdtempSync(join(isFast ? "/dev/shm" : tmpdir(), "heddle-tree-"));
  return { path, [Symbol.asyncDispose]: () => removeTree(path, signal) };
}

async function run(
  args: readonly string[],
  strike?: string,
  as: { readonly uid?: number; readonly gid?: number } = {},
  before: readonly string[] = [],
): Promise<string> {
  const [program = "", ...rest] = [...before, process.execPath, CHILD, ...args];
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(program, rest, {
    env: { PATH, NODE_COMPILE_CACHE, ...(strike === undefined ? {} : { HEDDLE_FAILPOINT: strike }) },
    stdio: ["ignore", "pipe", "inherit"],
    ...as,
  });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const [code, killed] = await once(child, "close");
  return killed === null ? `${output}exit ${code}` : `${output}${killed}`;
}

test.runIf(canStepDown || !isRoot)(
  "13: what cannot be read and is not wanted is known by its stat, what is wanted is named (needs an ordinary user)",
  async () => {
    await using scratchFolder = scratch();
    chmodSync(scratchFolder.path, 0o777);
    const said = await run(["closed", scratchFolder.path], undefined, isRoot ? NOBODY : {});
    expect(said.split("\n")).toEqual([
      "changed a.js kept 64",
      "changed old kept 0",
      "added secret left out 0",
      "secret cannot be read (EACCES); make it readable (chmod u+rX), or remove it",
      "exit 0",
    ]);
  },
);

test.runIf(canStepDown || !isRoot)(
  "13: work in a workspace that its agent has closed is frozen and undone (needs an ordinary user)",
  async () => {
    await using scratchFolder = scratch();
    chmodSync(scratchFolder.path, 0o777);
    const said = await run(["shut", scratchFolder.path], undefined, isRoot ? NOBODY : {});
    const each = ["src/a.js frozen, 1 undone", "750 a"];
    expect(said.split("\n")).toEqual([...each, ...each, ...each, "exit 0"]);
  },
);

describe("13: trees made by chance are kept, frozen, read as one, undone and applied", () => {
  const trees = isFull ? 1_000 : 40;

  test("40 of them (1,000 in the full run)", async () => {
    await using scratchFolder = scratch();
    const said = await run(["random", scratchFolder.path, "1", String(1 + trees)]);
    expect(said).toBe(`done: ${trees} trees, with changes\nexit 0`);
  });

  test.runIf(canStepDown)("by an ordinary user (only root can become one)", async () => {
    await using scratchFolder = scratch();
    chmodSync(scratchFolder.path, 0o777);
    const said = await run(["random", scratchFolder.path, "500", "515"], undefined, NOBODY);
    expect(said).toMatch(/^done: 15 trees, with changes\nexit 0$/);
  });
});

test("13: a full disk is an error of the store, and nothing half stays", async () => {
  await using scratchFolder = scratch();
  makeTree(join(scratchFolder.path, "workspace"), chanceOf(3));
  expect(await run(["keep", scratchFolder.path], "tree.during-keep=enospc")).toBe("store.full: \nexit 1");
  expect(readdirSync(join(scratchFolder.path, "rooms", "task"))).toEqual([]);
});

test.runIf(canStepDown)(
  "13: a file that cannot be read is named, and nothing half stays (only root can become another user)",
  async () => {
    await using scratchFolder = scratch();
    chmodSync(scratchFolder.path, 0o777);
    mkdirSync(join(scratchFolder.path, "workspace"));
    writeFileSync(join(scratchFolder.path, "workspace", "secret"), "s", { mode: 0 });
    expect(await run(["keep", scratchFolder.path], undefined, NOBODY)).toBe("path.invalid: secret\nexit 1");
    expect(readdirSync(join(scratchFolder.path, "rooms", "task"))).toEqual([]);
  },
);

describe("13: a process that is killed leaves the workspace as before or as after", () => {
  /** Changes of every kind, with a folder turned into a link that leads out. */
  function prepare(scratchFolder: string): { readonly workspace: string; readonly task: string } {
    const workspace = join(scratchFolder, "workspace");
    makeTree(workspace, chanceOf(7));
    for (const name of ["one", "two", "three"]) {
      mkdirSync(join(workspace, "src", name), { recursive: true });
      writeFileSync(join(workspace, "src", name, "file.js"), name);
    }
    mkdirSync(join(scratchFolder, "outside"));
    writeFileSync(join(scratchFolder, "outside", "file.js"), "not yours");
    return { workspace, task: join(scratchFolder, "rooms", "task") };
  }

  async function work(scratchFolder: string, workspace: string): Promise<void> {
    change(workspace, chanceOf(7));
    writeFileSync(join(workspace, "src", "one", "file.js"), "changed");
    await removeTree(join(workspace, "src", "two"), signal);
    symlinkSync(join(scratchFolder, "outside"), join(workspace, "src", "two"));
    await removeTree(join(workspace, "src", "three"), signal);
    mkdirSync(join(workspace, "new", "deep"), { recursive: true });
    writeFileSync(join(workspace, "new", "deep", "file"), "new");
  }

  test.for(["tree.during-keep", "tree.before-kept"])(
    "at %s nothing is kept, and the next one begins anew",
    async (at) => {
      await using scratchFolder = scratch();
      const { workspace, task } = prepare(scratchFolder.path);
      const before = entriesOf(workspace);
      expect(await run(["keep", scratchFolder.path], `${at}=kill`)).toBe("SIGKILL");
      expect(await readKeptTree(join(task, "base"))).toBeUndefined();
      await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
      expect(readdirSync(task)).toEqual(["base"]);
      expect(differences(entriesOf(join(task, "base", "files")), before, { withTimes: true })).toEqual([]);
    },
  );

  test.for(["tree.during-freeze", "tree.after-freeze"])(
    "at %s nothing is frozen, and the next one begins anew",
    async (at) => {
      await using scratchFolder = scratch();
      const { workspace, task } = prepare(scratchFolder.path);
      const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
      await work(scratchFolder.path, workspace);
      const before = entriesOf(workspace);
      expect(await run(["freeze", scratchFolder.path], `${at}=kill`)).toBe("SIGKILL");
      expect(await readFrozenWork(join(task, "work"))).toBeUndefined();
      expect(differences(entriesOf(workspace), before, { withTimes: true })).toEqual([]);
      await freezeWork(workspace, base, { into: join(task, "work"), skip: [], signal });
      expect(readdirSync(task)).toEqual(["base", "work"]);
    },
  );
});

describe("13: a put that is struck at any of its steps comes to its end", () => {
  interface Prepared {
    readonly workspace: string;
    readonly task: string;
    readonly start: Looked[];
    readonly worked: Looked[];
  }

  /** A changed file, a removed folder, a new one, and a folder turned into a link that leads out. */
  async function prepare(scratchFolder: string, what: "undo" | "apply"): Promise<Prepared> {
    const [workspace, task] = [join(scratchFolder, "workspace"), join(scratchFolder, "rooms", "task")];
    for (const name of ["gone", "way"]) mkdirSync(join(workspace, name), { recursive: true });
    writeFileSync(join(workspace, "a.js"), "a");
    for (const name of ["gone/x", "way/y"]) writeFileSync(join(workspace, name), "x");
    mkdirSync(join(scratchFolder, "outside"));
    writeFileSync(join(scratchFolder, "outside", "x"), "not yours");
    const start = entriesOf(workspace);
    const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
    writeFileSync(join(workspace, "a.js"), "changed");
    for (const name of ["gone", "way"]) rmSync(join(workspace, name), { recursive: true });
    symlinkSync(join(scratchFolder, "outside"), join(workspace, "way"));
    mkdirSync(join(workspace, "new"));
    writeFileSync(join(workspace, "new", "z"), "z");
    const worked = entriesOf(workspace);
    await freezeWork(workspace, base, { into: join(task, "work"), skip: [], signal });
    if (what === "apply") await putBack(workspace, base, { dir: task, signal });
    return { workspace, task, start, worked };
  }

  async function strikeAt(what: "undo" | "apply", strike: string): Promise<string> {
    await using scratchFolder = scratch();
    const { workspace, task, start, worked } = await prepare(scratchFolder.path, what);
    const [before, after] = what === "undo" ? [worked, start] : [start, worked];
    const said = await run([what, scratchFolder.path], strike);
    const isBegun = existsSync(join(task, "put.json"));
    const finished = await finishPutting(join(scratchFolder.path, "rooms"), signal);
    expect(finished, strike).toEqual(isBegun ? [{ dir: task, workspace, left: [] }] : []);
    const isUntouched = strike.startsWith("tree.before-intent") || !strike.endsWith("=kill");
    const differ = differences(entriesOf(workspace), isUntouched ? before : after, { withTimes: what === "undo" });
    expect(differ, strike).toEqual([]);
    expect(existsSync(join(task, "put.json")), strike).toBe(false);
    expect(readFileSync(join(scratchFolder.path, "outside", "x"), "utf8")).toBe("not yours");
    return said;
  }

  /** Two at a time: most of a child is its start. */
  async function strikeAll(what: "undo" | "apply", every: number): Promise<number> {
    for (let step = 1; ; step += 2 * every) {
      const strikes = [step, step + every].map((n) => strikeAt(what, `tree.during-put@${n}=kill`));
      const said = await Promise.all(strikes);
      const survived = said.indexOf("exit 0");
      if (survived !== -1) return step + survived * every;
      expect(said).toEqual(["SIGKILL", "SIGKILL"]);
    }
  }

  test.for([
    ["undo", "every second step (every one in the full run)", isFull ? 1 : 2],
    ["apply", "every third step (every one in the full run)", isFull ? 1 : 3],
  ] as const)("%s, killed at %s", async ([what, , every]) => {
    expect(await strikeAll(what, every)).toBeGreaterThan(7);
    for (const at of ["tree.before-intent", "tree.after-intent", "tree.before-put-end"]) {
      expect(await strikeAt(what, `${at}=kill`)).toBe("SIGKILL");
    }
  });

  test.for([
    ["undo", "tree.before-intent=enospc", "store.full"],
    ["undo", "tree.after-intent=enospc", "store.full"],
    ["undo", "tree.during-put@3=enospc", "store.full"],
    ["undo", "tree.during-put@9=enospc", "store.full"],
    ["undo", "tree.during-put@4=eio", "store.failed"],
    ["undo", "tree.during-put@8=eio", "store.failed"],
    ["apply", "tree.during-put@2=eio", "store.failed"],
    ["apply", "tree.during-put@7=enospc", "store.full"],
  ] as const)("%s, %s is the error %s, and all is as before", async ([what, strike, code]) => {
    expect(await strikeAt(what, strike)).toBe(`${code}: \nexit 1`);
  });

  test("whoever wants the folder takes the claim of a dead process over, and finds it whole", async () => {
    await using scratchFolder = scratch();
    const { task, workspace, start } = await prepare(scratchFolder.path, "undo");
    expect(await run(["undo", scratchFolder.path], "tree.during-put@3=kill")).toBe("SIGKILL");
    const claims = readdirSync(join(scratchFolder.path, "putting"));
    expect(claims).toHaveLength(1);
    const another = { dir: join(scratchFolder.path, "rooms", "another"), signal };
    {
      await using _claim = await claimFolder(workspace, another);
      expect(differences(entriesOf(workspace), start, { withTimes: true })).toEqual([]);
      expect(existsSync(join(task, "put.json"))).toBe(false);
      await expect(claimStore(join(scratchFolder.path, "putting", claims[0] ?? ""), "third")).rejects.toMatchObject({
        code: "store.owned",
        details: { pid: process.pid },
      });
    }
    await using _again = await claimFolder(workspace, another);
  });

  test.runIf(canMount)(
    "on a disk that is really full changes nothing, and does when there is room (only root mounts one)",
    async () => {
      await using scratchFolder = scratch();
      const said = await run(["full", scratchFolder.path], undefined, {}, [
        "unshare",
        "--mount",
        "--propagation",
        "private",
      ]);
      expect(said).toBe("store.full: \nas before\nas kept\nexit 0");
    },
  );

  test("a program that writes on to what a killed undo has moved aside loses nothing", async () => {
    await using scratchFolder = scratch();
    const { task, workspace } = await prepare(scratchFolder.path, "undo");
    expect(await run(["undo", scratchFolder.path], "tree.during-put@4=kill")).toBe("SIGKILL");
    const aside = readdirSync(workspace).filter((name) => name.endsWith("-was"));
    expect(aside).toHaveLength(2);
    for (const name of aside) appendFileSync(join(workspace, name), ", and more");
    const finished = await finishPutting(join(scratchFolder.path, "rooms"), signal);
    expect(finished).toEqual([{ dir: task, workspace, left: ["a.js", "new/z"] }]);
    expect(readFileSync(join(workspace, "a.js"), "utf8")).toBe("changed, and more");
    expect(readFileSync(join(workspace, "new/z"), "utf8")).toBe("z, and more");
    expect(readdirSync(workspace)).toEqual(["a.js", "gone", "new", "way"]);
  });

  test("a second process is refused while the first is at it, also to resume", async () => {
    await using scratchFolder = scratch();
    const { task, workspace, worked } = await prepare(scratchFolder.path, "undo");
    expect(await run(["undo", scratchFolder.path], "tree.after-intent=kill")).toBe("SIGKILL");
    {
      await using _other = await claimStore(task, "heddle");
      expect(await run(["undo", scratchFolder.path])).toBe("store.busy: \nexit 1");
      expect(await finishPutting(join(scratchFolder.path, "rooms"), signal)).toEqual([]);
      expect(differences(entriesOf(workspace), worked, { withTimes: true })).toEqual([]);
    }
    expect(await resumePutting(join(scratchFolder.path, "rooms"), signal)).toEqual([workspace]);
  });
});
