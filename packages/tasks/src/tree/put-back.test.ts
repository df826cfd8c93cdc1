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
import { brief, TreePlace } from "../../test/tree-place.ts";
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
    await using place = new TreePlace({ "src/a.js": "a", "src/lib/b.js": "b" });
    const base = await place.keep();
    const outside = join(place.path, "outside");
    mkdirSync(join(outside, "lib"), { recursive: true });
    writeFileSync(join(outside, "a.js"), "theirs");
    renameSync(place.at("src"), place.at("moved"));
    symlinkSync(outside, place.at("src"));
    const plan = await planUndo(place.workspace, base, { skip: [], signal });
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
    expect(brief(await putBack(place.workspace, base, { dir: place.dir, signal }))).toEqual(brief(plan));
    expect(lstatSync(place.at("src")).isDirectory()).toBe(true);
    expect(differences(entriesOf(place.workspace), entriesOf(base.folder), { withTimes: true })).toEqual([]);
    expect(entriesOf(outside).map(({ path }) => path)).toEqual(["a.js", "lib"]);
    expect(readFileSync(join(outside, "a.js"), "utf8")).toBe("theirs");
  });

  test("breaks a hard link instead of writing to the other name", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    rmSync(place.at("a.js"));
    writeFileSync(join(place.path, "theirs"), "theirs");
    linkSync(join(place.path, "theirs"), place.at("a.js"));
    await putBack(place.workspace, base, { dir: place.dir, signal });
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("a");
    expect(readFileSync(join(place.path, "theirs"), "utf8")).toBe("theirs");
  });

  test("opens folders that an agent has closed, and removes a tree too deep to be named", async () => {
    await using place = new TreePlace({ "src/lib/b.js": "b" });
    const base = await place.keep();
    place.write("src/lib/more", "m");
    chmodSync(place.at("src/lib"), 0);
    const part = "d".repeat(200);
    let deep = place.at("deep");
    mkdirSync(deep);
    for (let level = 0; level < 300; level += 1) {
      // Deeper than any path: the one above is put into a new one.
      const above = place.at("above");
      mkdirSync(above);
      renameSync(deep, join(above, part));
      renameSync(above, place.at("deep"));
      deep = place.at("deep");
    }
    await putBack(place.workspace, base, { dir: place.dir, signal });
    expect(differences(entriesOf(place.workspace), entriesOf(base.folder), { withTimes: true })).toEqual([]);
  });

  test("that was interrupted leaves what others did meanwhile, and says so", async () => {
    await using place = new TreePlace({ "a.js": "a", "b.js": "b" });
    const base = await place.keep();
    place.write("a.js", "A");
    place.write("b.js", "B");
    place.write("new/z", "z");
    const steps = [
      { path: "a.js", wanted: wantedOf(base, "a.js"), was: { kind: "file", sha256: sha256("A") } },
      { path: "b.js", wanted: wantedOf(base, "b.js"), was: { kind: "file", sha256: sha256("B") } },
      { path: "new", was: { kind: "folder", sha256: "" } },
      { path: "new/z", was: { kind: "file", sha256: sha256("z") } },
    ];
    const intent = { v: 1, id: "1", folder: place.workspace, from: base.folder, steps, times: [], finals: [] };
    writeFileSync(join(place.dir, "put.json"), JSON.stringify(intent));
    place.write("b.js", "mine");
    place.write("new/mine", "mine");
    const left = ["b.js", "new"];
    expect(await finishPutting(join(place.path, "rooms"), signal)).toEqual([
      { dir: place.dir, workspace: place.workspace, left },
    ]);
    expect(readLeft(place.dir)).toEqual({ folder: place.workspace, paths: left, count: 2 });
    expect(readdirSync(place.workspace)).toEqual(["a.js", "b.js", "new"]);
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("a");
    expect(readFileSync(place.at("b.js"), "utf8")).toBe("mine");
    expect(readdirSync(place.at("new"))).toEqual(["mine"]);
    await putBack(place.workspace, base, { dir: place.dir, signal });
    expect(readLeft(place.dir)).toBeUndefined();
  });

  test("of work is refused where the workspace has moved on, and changes nothing", async () => {
    await using place = new TreePlace({ "a.js": "a", "b.js": "b" });
    const base = await place.keep();
    place.write("a.js", "A");
    place.write("b.js", "B");
    const frozen = await place.freeze(base);
    await putBack(place.workspace, base, { dir: place.dir, signal });
    place.write("b.js", "mine");
    const put = putWork(place.workspace, frozen, frozen.changes, { dir: place.dir, base, signal });
    await expect(put).rejects.toMatchObject({ code: "task.rejected", details: { path: "b.js" } });
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("a");
    await putWork(place.workspace, frozen, frozen.changes.slice(0, 1), { dir: place.dir, base, signal });
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("A");
    expect(readFileSync(place.at("b.js"), "utf8")).toBe("mine");
  });

  test("leaves what its user changes while it runs, and names it", async () => {
    await using place = new TreePlace({ "a.js": "a", "b.js": "b", "c.js": "c", "d.js": "d" });
    const base = await place.keep();
    for (const name of ["a.js", "b.js", "c.js", "new/z", "new/y"]) place.write(name, "agent");
    utimesSync(place.at("d.js"), 1, 1);
    const approve = async (): Promise<void> => {
      place.write("a.js", "mine!");
      rmSync(place.at("b.js"));
      symlinkSync("a.js", place.at("b.js"));
      place.write("new/z", "mine!");
      place.write("d.js", "mine!");
      place.write("mine", "mine!");
    };
    await expect(putBack(place.workspace, base, { dir: place.dir, signal, approve })).rejects.toMatchObject({
      code: "task.rejected",
      details: { files: "a.js\nb.js\nnew\nnew/z" },
    });
    expect(readdirSync(place.workspace)).toEqual(["a.js", "b.js", "c.js", "d.js", "mine", "new"]);
    for (const name of ["a.js", "new/z", "d.js", "mine"]) expect(readFileSync(place.at(name), "utf8")).toBe("mine!");
    expect(lstatSync(place.at("b.js")).isSymbolicLink()).toBe(true);
    expect(lstatSync(place.at("d.js")).mtimeMs).toBeGreaterThan(1_000_000);
    expect(readFileSync(place.at("c.js"), "utf8")).toBe("c");
    expect(readdirSync(place.at("new"))).toEqual(["z"]);
    expect(existsSync(join(place.dir, "put.json"))).toBe(false);
  });

  test("goes into the folder that was meant: no link in its place is followed, and no other folder written", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    place.write("a.js", "A");
    const [away, outside] = [join(place.path, "away"), join(place.path, "outside")];
    mkdirSync(outside);
    writeFileSync(join(outside, "theirs"), "theirs");
    const swap = async (): Promise<void> => {
      renameSync(place.workspace, away);
      renameSync(outside, place.workspace);
    };
    const moved = { code: "workspace.moved" };
    await expect(putBack(place.workspace, base, { dir: place.dir, signal, approve: swap })).rejects.toMatchObject(
      moved,
    );
    expect(readdirSync(place.workspace)).toEqual(["theirs"]);
    renameSync(place.workspace, outside);
    symlinkSync(outside, place.workspace);
    await expect(putBack(place.workspace, base, { dir: place.dir, signal })).rejects.toMatchObject(moved);
    expect(readdirSync(outside)).toEqual(["theirs"]);
    expect(existsSync(join(place.dir, "put.json"))).toBe(false);
  });

  test("gives the workspace itself its mode back, and opens one that was closed", async () => {
    await using place = new TreePlace({ "a.js": "a", old: "o" });
    utimesSync(place.at("old"), "-86400.5", "-86400.5");
    chmodSync(place.workspace, 0o750);
    await place.keep();
    const base = await readKeptTree(join(place.dir, "base"));
    if (base === undefined) throw new Error("it is not there");
    place.write("a.js", "A");
    place.write("old", "new");
    chmodSync(place.workspace, 0o555);
    await putBack(place.workspace, base, { dir: place.dir, signal });
    expect(lstatSync(place.workspace).mode & 0o7777).toBe(0o750);
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("a");
    expect(lstatSync(place.at("old"), { bigint: true }).mtimeNs / 1_000_000n).toBe(-86_400_500n);
    chmodSync(place.workspace, 0o700);
    expect(await putBack(place.workspace, base, { dir: place.dir, signal })).toEqual([]);
    expect(lstatSync(place.workspace).mode & 0o7777).toBe(0o750);
  });

  test("that cannot be finished is in the way of that folder alone", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const other = join(place.path, "other");
    mkdirSync(other);
    const [stuck, next] = [join(place.path, "rooms", "a-stuck"), join(place.path, "rooms", "next")];
    mkdirSync(stuck, { recursive: true });
    const base = await place.keep();
    const steps = [{ path: "b.js", wanted: wantedOf(base, "a.js") }];
    const intent = { v: 1, id: "1", folder: other, from: join(place.path, "none"), steps, times: [], finals: [] };
    writeFileSync(join(stuck, "put.json"), JSON.stringify(intent));
    place.write("a.js", "A");
    expect(brief(await putBack(place.workspace, base, { dir: place.dir, signal }))).toEqual(["changed a.js"]);
    const failed: unknown[] = [];
    expect(await finishPutting(join(place.path, "rooms"), signal, (put) => failed.push(put))).toEqual([]);
    const error = expect.objectContaining({ code: "store.failed" });
    expect(failed).toEqual([{ dir: stuck, workspace: other, error }]);
    await expect(claimFolder(other, { dir: next, signal })).rejects.toMatchObject({ code: "store.failed" });
    await expect(claimFolder(place.workspace, { dir: stuck, signal })).rejects.toMatchObject({ code: "store.failed" });
  });

  test("leaves a claim on its folder, which is collected when nobody holds it and it has not been used for long", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const claims = join(place.path, "putting");
    const collect = (isOld: boolean): Promise<void> => collectFolderClaims(place.path, { isOld: () => isOld, signal });
    await collect(true);
    const held = await claimFolder(place.workspace, { dir: place.dir, signal });
    await collect(true);
    expect(readdirSync(claims), "held").toHaveLength(1);
    await held[Symbol.asyncDispose]();
    await collect(false);
    expect(readdirSync(claims), "used not long ago").toHaveLength(1);
    // What one that was killed while it collected has left goes with the next.
    mkdirSync(join(claims, "0.gone", "owner"), { recursive: true });
    await collect(true);
    expect(readdirSync(claims)).toEqual([]);
    await using _again = await claimFolder(place.workspace, { dir: place.dir, signal });
    await expect(claimStore(join(claims, readdirSync(claims)[0] ?? ""), "another")).rejects.toMatchObject({
      code: "store.owned",
    });
  });

  test("waits while its folder is copied or changed, and others wait for it", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    place.write("a.js", "A");
    const held = await claimFolder(place.workspace, { dir: join(place.path, "rooms", "other"), signal });
    let next: Promise<string> | undefined;
    const approve = async (): Promise<void> => {
      // Who comes now sees what the put leaves.
      next = claimFolder(place.workspace, { dir: join(place.path, "rooms", "other"), signal }).then(async (claim) => {
        await using _claim = claim;
        return readFileSync(place.at("a.js"), "utf8");
      });
    };
    const put = putBack(place.workspace, base, { dir: place.dir, signal, approve });
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("A");
    expect(next).toBeUndefined();
    await held[Symbol.asyncDispose]();
    await put;
    expect(await next).toBe("a");
  });
});
