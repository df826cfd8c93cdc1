import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chanceOf, change, differences, entriesOf, makeTree } from "../../test/random-trees.ts";
import { freezeWork, readFrozenWork } from "./freeze-work.ts";
import { keepTree, readKeptTree } from "./keep-tree.ts";
import { putBack, resumePutting } from "./put-back.ts";
import { removeTree } from "./remove-tree.ts";

const CHILD = new URL("../../test/tree-in-child.ts", import.meta.url).pathname;
const NOBODY = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const canStepDown = isRoot && spawnSync(process.execPath, ["--check", CHILD], NOBODY).status === 0;
const TMPFS = 0x01021994;
const { signal } = new AbortController();

/** In memory where there is some: what is synced there costs nothing. */
function scratch(): AsyncDisposable & { readonly path: string } {
  const isFast = existsSync("/dev/shm") && statfsSync("/dev/shm").type === TMPFS;
  const path = mkdtempSync(join(isFast ? "/dev/shm" : tmpdir(), "heddle-tree-"));
  return { path, [Symbol.asyncDispose]: () => removeTree(path, signal) };
}

async function run(args: readonly string[], strike?: string, as: { uid?: number; gid?: number } = {}): Promise<string> {
  const child = spawn(process.execPath, ["--conditions=heddle-source", CHILD, ...args], {
    env: { PATH: process.env["PATH"], ...(strike === undefined ? {} : { HEDDLE_FAILPOINT: strike }) },
    stdio: ["ignore", "pipe", "inherit"],
    ...as,
  });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const [code, killed] = await once(child, "close");
  return killed === null ? `${output}exit ${code}` : `${output}${killed}`;
}

describe("13: trees made by chance are kept, frozen, read as one, undone and applied", () => {
  test.for([[1, 100]])("from seed %i to %i", async ([from, to]) => {
    await using place = scratch();
    expect(await run(["random", place.path, String(from), String(to)])).toMatch(
      /^done: \d+ trees, with changes\nexit 0$/,
    );
  });

  test.runIf(canStepDown)("by an ordinary user (only root can become one)", async () => {
    await using place = scratch();
    chmodSync(place.path, 0o777);
    const said = await run(["random", place.path, "500", "560"], undefined, NOBODY);
    expect(said).toMatch(/^done: 60 trees, with changes\nexit 0$/);
  });
});

test("13: a full disk is an error of the store, and nothing half stays", async () => {
  await using place = scratch();
  makeTree(join(place.path, "workspace"), chanceOf(3));
  expect(await run(["keep", place.path], "tree.during-keep=enospc")).toBe("store.full: \nexit 1");
  expect(readdirSync(join(place.path, "rooms", "task"))).toEqual([]);
});

test.runIf(canStepDown)(
  "13: a file that cannot be read is named, and nothing half stays (only root can become another user)",
  async () => {
    await using place = scratch();
    chmodSync(place.path, 0o777);
    mkdirSync(join(place.path, "workspace"));
    writeFileSync(join(place.path, "workspace", "secret"), "s", { mode: 0 });
    expect(await run(["keep", place.path], undefined, NOBODY)).toBe("path.invalid: secret\nexit 1");
    expect(readdirSync(join(place.path, "rooms", "task"))).toEqual([]);
  },
);

describe("13: a process that is killed leaves the workspace as before or as after", () => {
  /** Changes of every kind, with a folder turned into a link that leads out. */
  function prepare(place: string): { readonly workspace: string; readonly task: string } {
    const workspace = join(place, "workspace");
    makeTree(workspace, chanceOf(7));
    for (const name of ["one", "two", "three"]) {
      mkdirSync(join(workspace, "src", name), { recursive: true });
      writeFileSync(join(workspace, "src", name, "file.js"), name);
    }
    mkdirSync(join(place, "outside"));
    writeFileSync(join(place, "outside", "file.js"), "not yours");
    return { workspace, task: join(place, "rooms", "task") };
  }

  async function work(place: string, workspace: string): Promise<void> {
    change(workspace, chanceOf(7));
    writeFileSync(join(workspace, "src", "one", "file.js"), "changed");
    await removeTree(join(workspace, "src", "two"), signal);
    symlinkSync(join(place, "outside"), join(workspace, "src", "two"));
    await removeTree(join(workspace, "src", "three"), signal);
    mkdirSync(join(workspace, "new", "deep"), { recursive: true });
    writeFileSync(join(workspace, "new", "deep", "file"), "new");
  }

  test.for(["tree.during-keep", "tree.before-kept"])(
    "at %s nothing is kept, and the next one begins anew",
    async (at) => {
      await using place = scratch();
      const { workspace, task } = prepare(place.path);
      const before = entriesOf(workspace);
      expect(await run(["keep", place.path], `${at}=kill`)).toBe("SIGKILL");
      expect(await readKeptTree(join(task, "base"))).toBeUndefined();
      await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
      expect(readdirSync(task)).toEqual(["base"]);
      expect(differences(entriesOf(join(task, "base", "files")), before, { withTimes: true })).toEqual([]);
    },
  );

  test.for(["tree.during-freeze", "tree.after-freeze"])(
    "at %s nothing is frozen, and the next one begins anew",
    async (at) => {
      await using place = scratch();
      const { workspace, task } = prepare(place.path);
      const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
      await work(place.path, workspace);
      const before = entriesOf(workspace);
      expect(await run(["freeze", place.path], `${at}=kill`)).toBe("SIGKILL");
      expect(await readFrozenWork(join(task, "work"))).toBeUndefined();
      expect(differences(entriesOf(workspace), before, { withTimes: true })).toEqual([]);
      await freezeWork(workspace, base, { into: join(task, "work"), skip: [], signal });
      expect(readdirSync(task)).toEqual(["base", "work"]);
    },
  );

  const PUTTING = ["tree.before-intent", "tree.after-intent", "tree.during-put", "tree.before-put-end"];

  test.for(PUTTING)("undoing, at %s", async (at) => {
    await using place = scratch();
    const { workspace, task } = prepare(place.path);
    const start = entriesOf(workspace);
    await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
    await work(place.path, workspace);
    const worked = entriesOf(workspace);
    expect(await run(["undo", place.path], `${at}=kill`)).toBe("SIGKILL");
    expect(await resumePutting(join(place.path, "rooms"), signal)).toEqual(
      at === "tree.before-intent" ? [] : [workspace],
    );
    const wanted = at === "tree.before-intent" ? worked : start;
    expect(differences(entriesOf(workspace), wanted, { withTimes: true })).toEqual([]);
    expect(existsSync(join(task, "put.json"))).toBe(false);
    expect(entriesOf(join(place.path, "outside")).map(({ path }) => path)).toEqual(["file.js"]);
  });

  test.for(PUTTING)("applying, at %s", async (at) => {
    await using place = scratch();
    const { workspace, task } = prepare(place.path);
    const base = await keepTree(workspace, { into: join(task, "base"), skip: [], signal });
    await work(place.path, workspace);
    const worked = entriesOf(workspace);
    await freezeWork(workspace, base, { into: join(task, "work"), skip: [], signal });
    await putBack(workspace, base, { dir: task, signal });
    const start = entriesOf(workspace);
    expect(await run(["apply", place.path], `${at}=kill`)).toBe("SIGKILL");
    expect(await resumePutting(join(place.path, "rooms"), signal)).toEqual(
      at === "tree.before-intent" ? [] : [workspace],
    );
    const wanted = at === "tree.before-intent" ? start : worked;
    expect(differences(entriesOf(workspace), wanted, { withTimes: false })).toEqual([]);
    expect(existsSync(join(task, "put.json"))).toBe(false);
  });
});
