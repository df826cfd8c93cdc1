import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { entriesOf } from "../../test/random-trees.ts";
import { brief, TreeFixture } from "../../test/tree-fixture.ts";
import { freezeWork, readFrozenWork } from "./freeze-work.ts";
import { readKeptTree, verifyKeptTree } from "./keep-tree.ts";
import { putBack, putWork } from "./put-back.ts";
import { openRoomFiles } from "./room-files.ts";

const { signal } = new AbortController();
const isRoot = process.getuid?.() === 0;

describe("13: a kept tree", () => {
  test("has what git ignores, the git folder and dependencies, and knows a socket by its kind alone", async () => {
    await using fixture = new TreeFixture({
      "a.js": "a",
      ".gitignore": "dist",
      "dist/x": "x",
      ".git/HEAD": "ref",
      "node_modules/m/i.js": "m",
    });
    await using server = createServer();
    await once(server.listen(fixture.at("socket")), "listening");
    linkSync(fixture.at("a.js"), fixture.at("twin.js"));
    const base = await fixture.keep();
    expect([...base.manifest].map(([path, { kind }]) => `${path} ${kind}`)).toEqual([
      ".git folder",
      ".git/HEAD file",
      ".gitignore file",
      "a.js file",
      "dist folder",
      "dist/x file",
      "node_modules folder",
      "node_modules/m folder",
      "node_modules/m/i.js file",
      "socket other",
      "twin.js file",
    ]);
    expect(statSync(join(base.folder, "twin.js")).nlink).toBe(1);
    expect(await verifyKeptTree(base, signal)).toEqual([]);
    expect(await readKeptTree(join(fixture.dir, "base"))).toEqual(base);
  });

  test("links what has not changed since an earlier one, and reads what has", async () => {
    await using fixture = new TreeFixture({ "same.js": "same", "other.js": "other" });
    // Old enough that its change time proves something.
    while (Date.now() - statSync(fixture.at("other.js")).ctimeMs < 30) await new Promise(setImmediate);
    const base = await fixture.keep();
    writeFileSync(fixture.at("other.js"), "OTHER");
    const next = await fixture.keep({ into: join(fixture.dir, "next"), like: base });
    expect(lstatSync(join(next.folder, "same.js")).ino).toBe(lstatSync(join(base.folder, "same.js")).ino);
    expect(readFileSync(join(next.folder, "other.js"), "utf8")).toBe("OTHER");
    expect(readFileSync(join(base.folder, "other.js"), "utf8")).toBe("other");
  });

  test("above its size is refused before anything is copied, and names the largest folders; a sparse file counts", async () => {
    await using fixture = new TreeFixture({ "small/a": "a", "data/big": "" });
    truncateSync(fixture.at("data/big"), 30 * 1024 ** 3);
    await expect(fixture.keep()).rejects.toMatchObject({ code: "limit.reached", message: /data \(32213 MB\), small/ });
    expect(existsSync(fixture.dir)).toBe(false);
  });

  test("of a sparse file stays sparse and right", async () => {
    await using fixture = new TreeFixture({ sparse: "begin" });
    truncateSync(fixture.at("sparse"), 8 * 1024 ** 2);
    appendFileSync(fixture.at("sparse"), "end");
    const base = await fixture.keep();
    expect(readFileSync(join(base.folder, "sparse")).equals(readFileSync(fixture.at("sparse")))).toBe(true);
    expect(statSync(join(base.folder, "sparse")).blocks * 512).toBeLessThan(4 * 1024 ** 2);
  });

  test.runIf(!isRoot)("names a file that cannot be read (root reads all)", async () => {
    await using fixture = new TreeFixture({ "deep/secret": "s" });
    chmodSync(fixture.at("deep/secret"), 0);
    await expect(fixture.keep()).rejects.toMatchObject({
      code: "path.invalid",
      details: { path: "deep/secret", errno: "EACCES" },
    });
    expect(readdirSync(fixture.dir)).toEqual([]);
  });

  test("of a file that somebody keeps writing is an error that names it", async () => {
    await using fixture = new TreeFixture({ "log.txt": "" });
    truncateSync(fixture.at("log.txt"), 32 * 1024 ** 2);
    let isOver = false;
    const write = (): void => {
      if (isOver) return;
      appendFileSync(fixture.at("log.txt"), "x");
      setImmediate(write);
    };
    write();
    try {
      await expect(fixture.keep()).rejects.toMatchObject({
        code: "path.invalid",
        details: { path: "log.txt", reason: "changing" },
      });
    } finally {
      isOver = true;
    }
    expect(readdirSync(fixture.dir)).toEqual([]);
  });

  test("leaves out what it is told to, and its own folder", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "home/store": "s" });
    const into = fixture.at("home/rooms/base");
    const base = await fixture.keep({ into, skip: [fixture.at("home")] });
    expect([...base.manifest.keys()]).toEqual(["a.js"]);
    await putBack(fixture.workspace, base, { dir: fixture.at("home/rooms/task"), signal, skip: [fixture.at("home")] });
    expect(readFileSync(fixture.at("home/store"), "utf8")).toBe("s");
  });

  test("that somebody changed is told by its hashes", async () => {
    await using fixture = new TreeFixture({ "a.js": "aaa", "b.js": "bbb" });
    const base = await fixture.keep();
    writeFileSync(join(base.folder, "a.js"), "AAA");
    const room = await fixture.room(base);
    await expect(room.read("a.js")).rejects.toMatchObject({ code: "store.damaged" });
    expect(await verifyKeptTree(base, signal)).toEqual(["a.js"]);
    fixture.write("a.js", "changed");
    await expect(putBack(fixture.workspace, base, { dir: fixture.dir, signal })).rejects.toMatchObject({
      code: "store.damaged",
    });
    expect(readFileSync(fixture.at("a.js"), "utf8")).toBe("changed");
    const manifest = join(fixture.dir, "base", "manifest");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace("b.js", "c.js"));
    await expect(readKeptTree(join(fixture.dir, "base"))).rejects.toMatchObject({ code: "store.damaged" });
  });
});

describe("13: frozen work", () => {
  test("has changes of content, mode and kind; not what was touched or put back", async () => {
    await using fixture = new TreeFixture({
      "a.js": "a",
      "b.js": "b",
      "c.js": "c",
      "d.js": "d",
      "gone/x": "x",
      "kind/y": "y",
    });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    utimesSync(fixture.at("b.js"), 1, 1);
    fixture.write("c.js", "other");
    fixture.write("c.js", "c");
    chmodSync(fixture.at("d.js"), 0o755);
    rmSync(fixture.at("gone"), { recursive: true });
    rmSync(fixture.at("kind"), { recursive: true });
    symlinkSync("/etc", fixture.at("kind"));
    fixture.write("new/z", "z");
    const frozen = await fixture.freeze(base);
    expect(brief(frozen.changes)).toEqual([
      "changed a.js",
      "changed d.js",
      "removed gone",
      "removed gone/x",
      "changed kind",
      "removed kind/y",
      "added new",
      "added new/z",
    ]);
    expect(entriesOf(frozen.folder).map(({ path }) => path)).toEqual(["a.js", "d.js", "kind", "new", "new/z"]);
    expect(readlinkSync(join(frozen.folder, "kind"))).toBe("/etc");
  });

  test("finds a change that keeps size and modification time", async () => {
    await using fixture = new TreeFixture({ "a.js": "aaa" });
    const base = await fixture.keep();
    const { atime, mtime } = statSync(fixture.at("a.js"));
    fixture.write("a.js", "bbb");
    utimesSync(fixture.at("a.js"), atime, mtime);
    expect(brief((await fixture.freeze(base)).changes)).toEqual(["changed a.js"]);
  });

  test("stores only what is wanted and names all", async () => {
    await using fixture = new TreeFixture({});
    const base = await fixture.keep();
    fixture.write("src/a.js", "a");
    fixture.write("other.txt", "o");
    const frozen = await fixture.freeze(base, (path) => path.startsWith("src"));
    expect(brief(frozen.changes)).toEqual(["added other.txt", "added src", "added src/a.js"]);
    expect(entriesOf(frozen.folder).map(({ path }) => path)).toEqual(["src", "src/a.js"]);
  });
});

describe("13: frozen work has bounds", () => {
  test("a terabyte of nothing is refused at once, with the file and the way out", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    fixture.write("data/huge.bin", "");
    truncateSync(fixture.at("data/huge.bin"), 1024 ** 4);
    await expect(fixture.freeze(base)).rejects.toMatchObject({
      code: "limit.reached",
      message: /data\/huge\.bin \(1099512 MB\).*`deliver:`/,
      details: { path: "data/huge.bin" },
    });
    await expect(fixture.freeze(base, () => true)).rejects.toMatchObject({
      message: expect.stringMatching(/leave it out of the spec's `deliver:` \("!data\/huge\.bin"\)/),
    });
    await expect(fixture.freeze(base, undefined, { needsAll: true })).rejects.toMatchObject({
      message: expect.stringMatching(/Remove it$/),
    });
    truncateSync(fixture.at("data/huge.bin"), 20 * 1024 ** 3);
    await expect(fixture.freeze(base)).rejects.toMatchObject({
      message: expect.stringContaining("have 21474836481 bytes, more than the 21474836480 bytes that are judged"),
    });
    expect(readdirSync(fixture.dir)).toEqual(["base"]);
  });

  test("what nobody wants may be as large as it likes, frozen and undone without being read", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "grown.bin": "g" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    for (const name of ["huge.bin", "grown.bin"]) {
      fixture.write(name, "");
      truncateSync(fixture.at(name), 1024 ** 4);
    }
    const frozen = await fixture.freeze(base, (path) => path === "a.js");
    expect(brief(frozen.changes)).toEqual(["changed a.js", "changed grown.bin", "added huge.bin"]);
    expect(await readFrozenWork(join(fixture.dir, "work-1"))).toEqual(frozen);
    expect(brief(await putBack(fixture.workspace, base, { dir: fixture.dir, signal }))).toEqual(brief(frozen.changes));
    expect(readdirSync(fixture.workspace)).toEqual(["a.js", "grown.bin"]);
    expect(readFileSync(fixture.at("grown.bin"), "utf8")).toBe("g");
  });

  test("more files than may be are refused, and where they are is said", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    for (let index = 0; index < 20; index += 1) fixture.write(`many/${index}`, "");
    const into = join(fixture.dir, "work");
    const frozen = freezeWork(fixture.workspace, base, { into, skip: [], maxEntries: 10, signal });
    await expect(frozen).rejects.toMatchObject({
      code: "limit.reached",
      message: /more than 10 files/,
      details: { path: "many" },
    });
  });

  test("a picked file whose content was left out is called that, and not damaged", async () => {
    await using fixture = new TreeFixture({ "a.js": "a" });
    const base = await fixture.keep();
    fixture.write("other.js", "o");
    await fixture.freeze(base, (path) => path === "a.js");
    const frozen = await readFrozenWork(join(fixture.dir, "work-1"));
    if (frozen === undefined) throw new Error("it is not there");
    const picked = frozen.changes;
    const room = openRoomFiles(base, { frozen, picked }, { root: fixture.workspace, signal });
    const leftOut = { code: "task.illegal", message: /`deliver:`/, details: { path: "other.js" } };
    await expect(room.read("other.js")).rejects.toMatchObject(leftOut);
    rmSync(fixture.at("other.js"));
    await expect(putWork(fixture.workspace, frozen, picked, { dir: fixture.dir, base, signal })).rejects.toMatchObject(
      leftOut,
    );
    expect(readdirSync(fixture.workspace)).toEqual(["a.js"]);
  });
});

describe("13: the files of a room", () => {
  test("are the baseline and what was picked, with the folders that it needs", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "test.js": "t" });
    const base = await fixture.keep();
    fixture.write("a.js", "A");
    fixture.write("test.js", "cheated");
    fixture.write("src/lib/b.js", "b");
    const room = await fixture.room(base, ({ path }) => path === "src/lib/b.js");
    expect(brief(room.changes)).toEqual(["added src", "added src/lib", "added src/lib/b.js"]);
    expect((await room.read("test.js"))?.text).toBe("t");
    expect((await room.read("src/lib/b.js"))?.text).toBe("b");
    expect([...room.takeReads()]).toEqual(["src/lib/b.js"]);
    expect([...room.takeReads()]).toEqual([]);
    // Nobody looks at the workspace any more.
    rmSync(fixture.workspace, { recursive: true });
    expect((await room.find(["**"])).entries.map(({ path }) => path)).toEqual(["a.js", "src/lib/b.js", "test.js"]);
  });

  test("follow links by name alone, and none out of the room", async () => {
    await using fixture = new TreeFixture({ "src/a.js": "a" });
    const base = await fixture.keep();
    symlinkSync("src", fixture.at("way"));
    symlinkSync(fixture.at("src/a.js"), fixture.at("absolute"));
    symlinkSync("/etc/hostname", fixture.at("out"));
    symlinkSync("../outside", fixture.at("up"));
    symlinkSync("loop", fixture.at("loop"));
    const room = await fixture.room(base);
    expect((await room.read("way/a.js"))?.text).toBe("a");
    expect([...room.takeReads()]).toEqual(["way"]);
    expect((await room.read("absolute"))?.text).toBe("a");
    await expect(room.read("out")).rejects.toMatchObject({ code: "path.outside" });
    await expect(room.entry("up")).rejects.toMatchObject({ code: "path.outside" });
    await expect(room.entry("loop")).rejects.toMatchObject({ code: "path.invalid" });
    expect(await room.entry("way/none")).toBeUndefined();
  });

  test("tell of removed files that were looked for or would have matched", async () => {
    await using fixture = new TreeFixture({ "a.js": "a", "b.js": "b", "c.txt": "c" });
    const base = await fixture.keep();
    for (const name of ["a.js", "b.js", "c.txt"]) rmSync(fixture.at(name));
    const room = await fixture.room(base);
    expect(await room.entry("c.txt")).toBeUndefined();
    expect([...room.takeReads()]).toEqual(["c.txt"]);
    await room.find(["*.js"]);
    expect([...room.takeReads()]).toEqual(["a.js", "b.js"]);
  });
});
