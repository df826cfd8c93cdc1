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
import { brief, TreePlace } from "../../test/tree-place.ts";
import { freezeWork, readFrozenWork } from "./freeze-work.ts";
import { readKeptTree, verifyKeptTree } from "./keep-tree.ts";
import { putBack, putWork } from "./put-back.ts";
import { openRoomFiles } from "./room-files.ts";

const { signal } = new AbortController();
const isRoot = process.getuid?.() === 0;

describe("13: a kept tree", () => {
  test("has what git ignores, the git folder and dependencies, and knows a socket by its kind alone", async () => {
    await using place = new TreePlace({
      "a.js": "a",
      ".gitignore": "dist",
      "dist/x": "x",
      ".git/HEAD": "ref",
      "node_modules/m/i.js": "m",
    });
    await using server = createServer();
    await once(server.listen(place.at("socket")), "listening");
    linkSync(place.at("a.js"), place.at("twin.js"));
    const base = await place.keep();
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
    expect(await readKeptTree(join(place.dir, "base"))).toEqual(base);
  });

  test("links what has not changed since an earlier one, and reads what has", async () => {
    await using place = new TreePlace({ "same.js": "same", "other.js": "other" });
    // Old enough that its change time proves something.
    while (Date.now() - statSync(place.at("other.js")).ctimeMs < 30) await new Promise(setImmediate);
    const base = await place.keep();
    writeFileSync(place.at("other.js"), "OTHER");
    const next = await place.keep({ into: join(place.dir, "next"), like: base });
    expect(lstatSync(join(next.folder, "same.js")).ino).toBe(lstatSync(join(base.folder, "same.js")).ino);
    expect(readFileSync(join(next.folder, "other.js"), "utf8")).toBe("OTHER");
    expect(readFileSync(join(base.folder, "other.js"), "utf8")).toBe("other");
  });

  test("above its size is refused before anything is copied, and names the largest folders; a sparse file counts", async () => {
    await using place = new TreePlace({ "small/a": "a", "data/big": "" });
    truncateSync(place.at("data/big"), 30 * 1024 ** 3);
    await expect(place.keep()).rejects.toMatchObject({ code: "limit.reached", message: /data \(32213 MB\), small/ });
    expect(existsSync(place.dir)).toBe(false);
  });

  test("of a sparse file stays sparse and right", async () => {
    await using place = new TreePlace({ sparse: "begin" });
    truncateSync(place.at("sparse"), 8 * 1024 ** 2);
    appendFileSync(place.at("sparse"), "end");
    const base = await place.keep();
    expect(readFileSync(join(base.folder, "sparse")).equals(readFileSync(place.at("sparse")))).toBe(true);
    expect(statSync(join(base.folder, "sparse")).blocks * 512).toBeLessThan(4 * 1024 ** 2);
  });

  test.runIf(!isRoot)("names a file that cannot be read (root reads all)", async () => {
    await using place = new TreePlace({ "deep/secret": "s" });
    chmodSync(place.at("deep/secret"), 0);
    await expect(place.keep()).rejects.toMatchObject({
      code: "path.invalid",
      details: { path: "deep/secret", errno: "EACCES" },
    });
    expect(readdirSync(place.dir)).toEqual([]);
  });

  test("of a file that somebody keeps writing is an error that names it", async () => {
    await using place = new TreePlace({ "log.txt": "" });
    truncateSync(place.at("log.txt"), 32 * 1024 ** 2);
    let isOver = false;
    const write = (): void => {
      if (isOver) return;
      appendFileSync(place.at("log.txt"), "x");
      setImmediate(write);
    };
    write();
    try {
      await expect(place.keep()).rejects.toMatchObject({
        code: "path.invalid",
        details: { path: "log.txt", reason: "changing" },
      });
    } finally {
      isOver = true;
    }
    expect(readdirSync(place.dir)).toEqual([]);
  });

  test("leaves out what it is told to, and its own place", async () => {
    await using place = new TreePlace({ "a.js": "a", "home/store": "s" });
    const into = place.at("home/rooms/base");
    const base = await place.keep({ into, skip: [place.at("home")] });
    expect([...base.manifest.keys()]).toEqual(["a.js"]);
    await putBack(place.workspace, base, { dir: place.at("home/rooms/task"), signal, skip: [place.at("home")] });
    expect(readFileSync(place.at("home/store"), "utf8")).toBe("s");
  });

  test("that somebody changed is told by its hashes", async () => {
    await using place = new TreePlace({ "a.js": "aaa", "b.js": "bbb" });
    const base = await place.keep();
    writeFileSync(join(base.folder, "a.js"), "AAA");
    const room = await place.room(base);
    await expect(room.read("a.js")).rejects.toMatchObject({ code: "store.damaged" });
    expect(await verifyKeptTree(base, signal)).toEqual(["a.js"]);
    place.write("a.js", "changed");
    await expect(putBack(place.workspace, base, { dir: place.dir, signal })).rejects.toMatchObject({
      code: "store.damaged",
    });
    expect(readFileSync(place.at("a.js"), "utf8")).toBe("changed");
    const manifest = join(place.dir, "base", "manifest");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace("b.js", "c.js"));
    await expect(readKeptTree(join(place.dir, "base"))).rejects.toMatchObject({ code: "store.damaged" });
  });
});

describe("13: frozen work", () => {
  test("has changes of content, mode and kind; not what was touched or put back", async () => {
    await using place = new TreePlace({
      "a.js": "a",
      "b.js": "b",
      "c.js": "c",
      "d.js": "d",
      "gone/x": "x",
      "kind/y": "y",
    });
    const base = await place.keep();
    place.write("a.js", "A");
    utimesSync(place.at("b.js"), 1, 1);
    place.write("c.js", "other");
    place.write("c.js", "c");
    chmodSync(place.at("d.js"), 0o755);
    rmSync(place.at("gone"), { recursive: true });
    rmSync(place.at("kind"), { recursive: true });
    symlinkSync("/etc", place.at("kind"));
    place.write("new/z", "z");
    const frozen = await place.freeze(base);
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
    await using place = new TreePlace({ "a.js": "aaa" });
    const base = await place.keep();
    const { atime, mtime } = statSync(place.at("a.js"));
    place.write("a.js", "bbb");
    utimesSync(place.at("a.js"), atime, mtime);
    expect(brief((await place.freeze(base)).changes)).toEqual(["changed a.js"]);
  });

  test("stores only what is wanted and names all", async () => {
    await using place = new TreePlace({});
    const base = await place.keep();
    place.write("src/a.js", "a");
    place.write("other.txt", "o");
    const frozen = await place.freeze(base, (path) => path.startsWith("src"));
    expect(brief(frozen.changes)).toEqual(["added other.txt", "added src", "added src/a.js"]);
    expect(entriesOf(frozen.folder).map(({ path }) => path)).toEqual(["src", "src/a.js"]);
  });
});

describe("13: frozen work has bounds", () => {
  test("a terabyte of nothing is refused at once, with the file and the way out", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    place.write("a.js", "A");
    place.write("data/huge.bin", "");
    truncateSync(place.at("data/huge.bin"), 1024 ** 4);
    await expect(place.freeze(base)).rejects.toMatchObject({
      code: "limit.reached",
      message: /data\/huge\.bin \(1099512 MB\).*`deliver:`/,
      details: { path: "data/huge.bin" },
    });
    expect(readdirSync(place.dir)).toEqual(["base"]);
  });

  test("what nobody wants may be as large as it likes, frozen and undone without being read", async () => {
    await using place = new TreePlace({ "a.js": "a", "grown.bin": "g" });
    const base = await place.keep();
    place.write("a.js", "A");
    for (const name of ["huge.bin", "grown.bin"]) {
      place.write(name, "");
      truncateSync(place.at(name), 1024 ** 4);
    }
    const frozen = await place.freeze(base, (path) => path === "a.js");
    expect(brief(frozen.changes)).toEqual(["changed a.js", "changed grown.bin", "added huge.bin"]);
    expect(await readFrozenWork(join(place.dir, "work-1"))).toEqual(frozen);
    expect(brief(await putBack(place.workspace, base, { dir: place.dir, signal }))).toEqual(brief(frozen.changes));
    expect(readdirSync(place.workspace)).toEqual(["a.js", "grown.bin"]);
    expect(readFileSync(place.at("grown.bin"), "utf8")).toBe("g");
  });

  test("more files than may be are refused, and where they are is said", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    for (let index = 0; index < 20; index += 1) place.write(`many/${index}`, "");
    const into = join(place.dir, "work");
    const frozen = freezeWork(place.workspace, base, { into, skip: [], maxEntries: 10, signal });
    await expect(frozen).rejects.toMatchObject({
      code: "limit.reached",
      message: /more than 10 files/,
      details: { path: "many" },
    });
  });

  test("a picked file whose content was left out is called that, and not damaged", async () => {
    await using place = new TreePlace({ "a.js": "a" });
    const base = await place.keep();
    place.write("other.js", "o");
    await place.freeze(base, (path) => path === "a.js");
    const frozen = await readFrozenWork(join(place.dir, "work-1"));
    if (frozen === undefined) throw new Error("it is not there");
    const picked = frozen.changes;
    const room = openRoomFiles(base, { frozen, picked }, { root: place.workspace, signal });
    const leftOut = { code: "task.illegal", message: /`deliver:`/, details: { path: "other.js" } };
    await expect(room.read("other.js")).rejects.toMatchObject(leftOut);
    rmSync(place.at("other.js"));
    await expect(putWork(place.workspace, frozen, picked, { dir: place.dir, base, signal })).rejects.toMatchObject(
      leftOut,
    );
    expect(readdirSync(place.workspace)).toEqual(["a.js"]);
  });
});

describe("13: the files of a room", () => {
  test("are the baseline and what was picked, with the folders that it needs", async () => {
    await using place = new TreePlace({ "a.js": "a", "test.js": "t" });
    const base = await place.keep();
    place.write("a.js", "A");
    place.write("test.js", "cheated");
    place.write("src/lib/b.js", "b");
    const room = await place.room(base, ({ path }) => path === "src/lib/b.js");
    expect(brief(room.changes)).toEqual(["added src", "added src/lib", "added src/lib/b.js"]);
    expect((await room.read("test.js"))?.text).toBe("t");
    expect((await room.read("src/lib/b.js"))?.text).toBe("b");
    expect([...room.takeReads()]).toEqual(["src/lib/b.js"]);
    expect([...room.takeReads()]).toEqual([]);
    // Nobody looks at the workspace any more.
    rmSync(place.workspace, { recursive: true });
    expect((await room.find(["**"])).entries.map(({ path }) => path)).toEqual(["a.js", "src/lib/b.js", "test.js"]);
  });

  test("follow links by name alone, and none out of the room", async () => {
    await using place = new TreePlace({ "src/a.js": "a" });
    const base = await place.keep();
    symlinkSync("src", place.at("way"));
    symlinkSync(place.at("src/a.js"), place.at("absolute"));
    symlinkSync("/etc/hostname", place.at("out"));
    symlinkSync("../outside", place.at("up"));
    symlinkSync("loop", place.at("loop"));
    const room = await place.room(base);
    expect((await room.read("way/a.js"))?.text).toBe("a");
    expect([...room.takeReads()]).toEqual(["way"]);
    expect((await room.read("absolute"))?.text).toBe("a");
    await expect(room.read("out")).rejects.toMatchObject({ code: "path.outside" });
    await expect(room.entry("up")).rejects.toMatchObject({ code: "path.outside" });
    await expect(room.entry("loop")).rejects.toMatchObject({ code: "path.invalid" });
    expect(await room.entry("way/none")).toBeUndefined();
  });

  test("tell of removed files that were looked for or would have matched", async () => {
    await using place = new TreePlace({ "a.js": "a", "b.js": "b", "c.txt": "c" });
    const base = await place.keep();
    for (const name of ["a.js", "b.js", "c.txt"]) rmSync(place.at(name));
    const room = await place.room(base);
    expect(await room.entry("c.txt")).toBeUndefined();
    expect([...room.takeReads()]).toEqual(["c.txt"]);
    await room.find(["*.js"]);
    expect([...room.takeReads()]).toEqual(["a.js", "b.js"]);
  });
});
