import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { claimStore } from "@heddle/agent/store-claim";
import { describe, expect, test } from "vitest";
import { differences, entriesOf } from "../../test/random-trees.ts";
import { brief, TreeFixture } from "../../test/tree-fixture.ts";
import { readKeptTree } from "./keep-tree.ts";
import { sha256, type KeptTree } from "./manifest.ts";
import { collectFolderClaims } from "./folder-claims.ts";
import { claimFolder, finishPutting, planUndo, putBack, putWork, readLeft } from "./put-back.ts";

const { signal } = new AbortController();

function wantedOf(base: KeptTree, path: string): object {
  const { stamp: _, ...entry } = base.manifest.get(path) ?? {};
  return { ...entry, mtimeNs: String(base.manifest.get(path)?.mtimeNs) };
}

describe("13: putting back", () => {
  test("replaces a planted link and writes nothing through it", async () => {
    await using fixture = new TreeFixture({ "src/a.js": "a", "src/lib/b.js": "b" });
    const base = await fixture.keep();
    const outside = join(fixture.path, "outside");
    mkdirSync(join(outside, "lib"), { recursive: true });
    writeFileSync(join(outside, "a.js"), "theirs");
    renameSync(fixture.at("src"), fixture.at("moved"));
    symlinkSync(outside, fixture.at("src"));
    const plan = await planUndo(fixture.workspace, base, { skip: [], signal });
    expect(brief(plan)).toEqual([
      "added moved",
      "added moved/a.js",
      "added moved/lib",
      "added moved/lib/b.js",
      "changed src",
      "removed src/a.js",
      "removed src/lib",
      "removed src/lib/b.js",
    ]);
    expect(brief(await putBack(fixture.workspace, base, { dir: fixture.dir, signal }))).toEqual(brief(plan));
    expect(lstatSync(fixture.at("src")).isDirectory()).toBe(true);
    expect(differences(entriesOf(fixture.workspace), entriesOf(base.folder), { withTimes: true })).toEqual([]);
    expect(entriesOf(outside).map(({ path }) => path)).toEqual(["a.js", "lib"]);
    expect(readFileSync(join(outside, "a.js"), "utf8")).toBe("theirs");
  });

  test("breaks a hard link instead of writing to the other name", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    rmSync(fixture.at("a.js"));
    writeFileSync(join(fixture.path, "theirs"), "theirs");
    linkSync(join(fixture.path, "theirs"), fixture.at("a.js"));
    await putBack(fixture.workspace, base, { dir: fixture.dir, signal });
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("a");
    expect(readFileSync(join(fixture.path, "theirs"), "utf8")).toBe("theirs");
  });

  test("opens folders that an agent has closed, and removes a tree too deep to be named", async () => {
    await using fixture = new TreeFixture({ "src/lib/b.js": "b" });
    const base = await fixture.keep();
    fixture.write("src/lib/more", "m");
    chmodSync(fixture.at("src/lib"), 0);
    const part = "d".repeat(200);
    let deep = fixture.at("deep");
    mkdirSync(deep);
    for (let level = 0; level < 300; level += 1) {
      // Deeper than any path: the one above is put into a new one.
      const above = fixture.at("above");
      mkdirSync(above);
      renameSync(deep, join(above, part));
      renameSync(above, fixture.at("deep"));
      deep = fixture.at("deep");
    }
    await putBack(fixture.workspace, base, { dir: fixture.dir, signal });
    expect(differences(entriesOf(fixture.workspace), entriesOf(base.folder), { withTimes: true })).toEqual([]);
  });

  test("that was interrupted leaves what others did meanwhile, and says so", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "b.js": "b" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    fixture.write("b.js", "B");
    fixture.write("new/z", "z");
    const steps = [
      { path: "a.js", wanted: wantedOf(base, "a.js"), was: { kind: "file", sha256: sha256("A") } },
      { path: "b.js", wanted: wantedOf(base, "b.js"), was: { kind: "file", sha256: sha256("B") } },
      { path: "new", was: { kind: "folder", sha256: "" } },
      { path: "new/z", was: { kind: "file", sha256: sha256("z") } },
    ];
    const intent = { v: 1, id: "1", folder: fixture.workspace, from: base.folder, steps, times: [], finals: [] };
    writeFileSync(join(fixture.dir, "put.json"), JSON.stringify(intent));
    fixture.write("b.js", "mine");
    fixture.write("new/mine", "mine");
    const left = ["b.js", "new"];
    expect(await finishPutting(join(fixture.path, "rooms"), signal)).toEqual([
      { dir: fixture.dir, workspace: fixture.workspace, left },
    ]);
    expect(readLeft(fixture.dir)).toEqual({ folder: fixture.workspace, paths: left, count: 2 });
    expect(readdirSync(fixture.workspace)).toEqual(["a.js", "b.js", "new"]);
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("a");
    expect(readFileSync(fixture.at("b.js"), "utf8")).toBe("mine");
    expect(readdirSync(fixture.at("new"))).toEqual(["mine"]);
    await putBack(fixture.workspace, base, { dir: fixture.dir, signal });
    expect(readLeft(fixture.dir)).toBeUndefined();
  });

  test("of work is refused where the workspace has moved on, and changes nothing", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "b.js": "b" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    fixture.write("b.js", "B");
    const frozen = await fixture.freeze(base);
    await putBack(fixture.workspace, base, { dir: fixture.dir, signal });
    fixture.write("b.js", "mine");
    const put = putWork(fixture.workspace, frozen, frozen.changes, { dir: fixture.dir, base, signal });
    await expect(put).rejects.toMatchObject({ code: "task.rejected", details: { path: "b.js" } });
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("a");
    await putWork(fixture.workspace, frozen, frozen.changes.slice(0, 1), { dir: fixture.dir, base, signal });
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("A");
    expect(readFileSync(fixture.at("b.js"), "utf8")).toBe("mine");
  });

  test("leaves what its user changes while it runs, and names it", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "b.js": "b", "c.js": "c", "d.js": "d" });
    const base = await fixture.keep();
    for (const name of ["a.js", "b.js", "c.js", "new/z", "new/y"]) fixture.write(name, "agent");
    utimesSync(fixture.at("d.js"), 1, 1);
    const approve = async (): Promise<void> => {
      fixture.write("a.js", "mine!");
      rmSync(fixture.at("b.js"));
      symlinkSync("a.js", fixture.at("b.js"));
      fixture.write("new/z", "mine!");
      fixture.write("d.js", "mine!");
      fixture.write("mine", "mine!");
    };
    await expect(putBack(fixture.workspace, base, { dir: fixture.dir, signal, approve })).rejects.toMatchObject({
      code: "task.rejected",
      details: { files: "a.js\nb.js\nnew\nnew/z" },
    });
    expect(readdirSync(fixture.workspace)).toEqual(["a.js", "b.js", "c.js", "d.js", "mine", "new"]);
    for (const name of ["a.js", "new/z", "d.js", "mine"]) expect(readFileSync(fixture.at(name), "utf8")).toBe("mine!");
    expect(lstatSync(fixture.at("b.js")).isSymbolicLink()).toBe(true);
    expect(lstatSync(fixture.at("d.js")).mtimeMs).toBeGreaterThan(1_000_000);
    expect(readFileSync(fixture.at("c.js"), "utf8")).toBe("c");
    expect(readdirSync(fixture.at("new"))).toEqual(["z"]);
    expect(existsSync(join(fixture.dir, "put.json"))).toBe(false);
  });

  test("goes into the folder that was meant: no link in its place is followed, and no other folder written", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    const [away, outside] = [join(fixture.path, "away"), join(fixture.path, "outside")];
    mkdirSync(outside);
    writeFileSync(join(outside, "theirs"), "theirs");
    const swap = async (): Promise<void> => {
      renameSync(fixture.workspace, away);
      renameSync(outside, fixture.workspace);
    };
    const moved = { code: "workspace.moved" };
    await expect(putBack(fixture.workspace, base, { dir: fixture.dir, signal, approve: swap })).rejects.toMatchObject(
      moved,
    );
    expect(readdirSync(fixture.workspace)).toEqual(["theirs"]);
    renameSync(fixture.workspace, outside);
    symlinkSync(outside, fixture.workspace);
    await expect(putBack(fixture.workspace, base, { dir: fixture.dir, signal })).rejects.toMatchObject(moved);
    expect(readdirSync(outside)).toEqual(["theirs"]);
    expect(existsSync(join(fixture.dir, "put.json"))).toBe(false);
  });

  test("gives the workspace itself its mode back, and opens one that was closed", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", old: "o" });
    utimesSync(fixture.at("old"), "-86400.5", "-86400.5");
    chmodSync(fixture.workspace, 0o750);
    await fixture.keep();
    const base = await readKeptTree(join(fixture.dir, "base"));
    if (base === undefined) throw new Error("it is not there");
    fixture.write("a.js", "A");
    fixture.write("old", "new");
    chmodSync(fixture.workspace, 0o555);
    await putBack(fixture.workspace, base, { dir: fixture.dir, signal });
    expect(lstatSync(fixture.workspace).mode & 0o7777).toBe(0o750);
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("a");
    expect(lstatSync(fixture.at("old"), { bigint: true }).mtimeNs / 1_000_000n).toBe(-86_400_500n);
    chmodSync(fixture.workspace, 0o700);
    expect(await putBack(fixture.workspace, base, { dir: fixture.dir, signal })).toEqual([]);
    expect(lstatSync(fixture.workspace).mode & 0o7777).toBe(0o750);
  });

  test("that cannot be finished is in the way of that folder alone", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const other = join(fixture.path, "other");
    mkdirSync(other);
    const [stuck, next] = [join(fixture.path, "rooms", "a-stuck"), join(fixture.path, "rooms", "next")];
    mkdirSync(stuck, { recursive: true });
    const base = await fixture.keep();
    const steps = [{ path: "b.js", wanted: wantedOf(base, "a.js") }];
    const intent = { v: 1, id: "1", folder: other, from: join(fixture.path, "none"), steps, times: [], finals: [] };
    writeFileSync(join(stuck, "put.json"), JSON.stringify(intent));
    fixture.write("a.js", "A");
    expect(brief(await putBack(fixture.workspace, base, { dir: fixture.dir, signal }))).toEqual(["changed a.js"]);
    const failed: unknown[] = [];
    expect(await finishPutting(join(fixture.path, "rooms"), signal, (put) => failed.push(put))).toEqual([]);
    const error = expect.objectContaining({ code: "store.failed" });
    expect(failed).toEqual([{ dir: stuck, workspace: other, error }]);
    await expect(claimFolder(other, { dir: next, signal })).rejects.toMatchObject({ code: "store.failed" });
    await expect(claimFolder(fixture.workspace, { dir: stuck, signal })).rejects.toMatchObject({
      code: "store.failed",
    });
  });

  test("leaves a claim on its folder, which is collected when nobody holds it and it has not been used for long", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const claims = join(fixture.path, "putting");
    const collect = (isOld: boolean): Promise<void> =>
      collectFolderClaims(fixture.path, { isOld: () => isOld, signal });
    await collect(true);
    const held = await claimFolder(fixture.workspace, { dir: fixture.dir, signal });
    await collect(true);
    expect(readdirSync(claims), "held").toHaveLength(1);
    await held[Symbol.asyncDispose]();
    await collect(false);
    expect(readdirSync(claims), "used not long ago").toHaveLength(1);
    // What one that was killed while it collected has left goes with the next.
    mkdirSync(join(claims, "0.gone", "owner"), { recursive: true });
    await collect(true);
    expect(readdirSync(claims)).toEqual([]);
    await using _again = await claimFolder(fixture.workspace, { dir: fixture.dir, signal });
    await expect(claimStore(join(claims, readdirSync(claims)[0] ?? ""), "another")).rejects.toMatchObject({
      code: "store.owned",
    });
  });

  test("waits while its folder is copied or changed, and others wait for it", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    const held = await claimFolder(fixture.workspace, { dir: join(fixture.path, "rooms", "other"), signal });
    let next: Promise<string> | undefined;
    const approve = async (): Promise<void> => {
      // Who comes now sees what the put leaves.
      next = claimFolder(fixture.workspace, { dir: join(fixture.path, "rooms", "other"), signal }).then(
        async (claim) => {
          await using _claim = claim;
          return readFileSync(fixture.at("a.js"), "utf8");
        },
      );
    };
    const put = putBack(fixture.workspace, base, { dir: fixture.dir, signal, approve });
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("A");
    expect(next).toBeUndefined();
    await held[Symbol.asyncDispose]();
    await put;
    expect(await next).toBe("a");
  });
});
