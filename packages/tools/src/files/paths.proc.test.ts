import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer } from "node:net";
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  checkPath,
  listInside,
  readFileInside,
  removeFileInside,
  statInside,
  writeFileInside,
  type PathRules,
} from "./paths.ts";

let base: string;
let root: string;
let rules: PathRules;
const reading = { maxBytes: 1_000_000, signal: new AbortController().signal };

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), "heddle-paths-")));
  root = join(base, "ws");
  await mkdir(join(root, "src"), { recursive: true });
  await mkdir(join(base, "home"));
  await mkdir(join(base, "outside"));
  await writeFile(join(root, "src/a.txt"), "hello\n");
  await writeFile(join(base, "home/token"), "secret\n");
  await writeFile(join(base, "outside/file"), "outside\n");
  rules = { writeRoots: [root], masked: [join(base, "home")] };
});

afterEach(async () => {
  await rm(base, { recursive: true, force: true });
});

const at = (...parts: string[]): string => join(root, ...parts);
const read = async (path: string): Promise<string> => (await readFileInside(path, rules, reading)).bytes.toString();
const write = async (path: string, content = "new\n"): Promise<{ realPath: string }> =>
  await writeFileInside(path, content, rules, { createParents: true });

describe("where only some may be read", () => {
  beforeEach(async () => {
    await mkdir(join(base, "shown/in"), { recursive: true });
    await writeFile(join(base, "shown/in/file"), "shown\n");
    await symlink("shown", join(base, "known"));
    rules = { ...rules, readRoots: ["shown", "known", "gone"].map((name) => join(base, name)) };
  });

  test("the roots, what may be written and nothing else is there", async () => {
    expect(await read(join(base, "shown/in/file"))).toBe("shown\n");
    expect(await read(join(base, "known/in/file"))).toBe("shown\n");
    expect(await read(at("src/a.txt"))).toBe("hello\n");
    await symlink(join(base, "shown/in/file"), at("good"));
    expect(await read(at("good"))).toBe("shown\n");
    expect((await listInside(join(base, "known"), rules, { maxEntries: 9 })).entries).toEqual([
      { name: "in", kind: "directory" },
    ]);
    for (const access of ["read", "write"] as const) {
      expect(() => checkPath(join(base, "outside/file"), access, rules)).toThrow(
        expect.objectContaining({ code: "path.outside" }),
      );
    }
    for (const path of ["known", "shown/in/file", "ws/src", "ws/new"]) checkPath(join(base, path), "read", rules);
    await write(at("src/new.txt"));
  });

  test("what is hidden cannot be told from what does not exist, by name, by links or by ways back", async () => {
    await symlink(join(base, "outside"), at("out"));
    await symlink(join(base, "outside/file"), at("file"));
    await symlink(join(base, "missing/deep"), at("nowhere"));
    await symlink(`${base}/outside/../shown/in/file`, at("through"));
    await symlink(`${base}/missing/../shown/in/file`, at("past"));
    const hidden = ["outside/file", "outside", "missing", "missing/deep", "gone", "home/token"].map((name) =>
      join(base, name),
    );
    for (const path of [
      ...hidden,
      base,
      "/",
      "/var/lib",
      at("out/file"),
      at("file"),
      at("nowhere"),
      at("through"),
      at("past"),
    ]) {
      const refused = { code: "path.outside", message: `${path} is not available here` };
      if (path !== "/") await expect(read(path), path).rejects.toMatchObject(refused);
      await expect(statInside(path, rules), path).rejects.toMatchObject(refused);
      await expect(listInside(path, rules, { maxEntries: 9 }), path).rejects.toMatchObject(refused);
    }
  });

  test("a root that becomes a link leads nowhere", async () => {
    await rm(join(base, "shown"), { recursive: true });
    await symlink("outside", join(base, "shown"));
    for (const path of ["shown/file", "known/file"]) {
      await expect(read(join(base, path))).rejects.toMatchObject({ code: "path.outside" });
    }
  });
});

describe("the check in words", () => {
  test.for([
    ["a NUL byte", "/a\0b"],
    ["a home sign", "~/x"],
    ["an address", "file:///etc/passwd"],
    ["a relative path", "src/x"],
    ["going up", "/a/../b"],
    ["a double slash", "/a//b"],
    ["half a surrogate", "/a/\uD800"],
    ["too many bytes", `/${"a".repeat(5000)}`],
    ["/proc", "/proc/self/root/etc/passwd"],
    ["/dev", "/dev/stdin"],
    ["/sys", "/sys/kernel"],
  ] as const)("refuses %s", ([, path]) => {
    expect(() => checkPath(path, "read", rules)).toThrow(expect.objectContaining({ code: "path.invalid" }));
  });

  test("refuses what is masked for reading and what is outside for writing", () => {
    expect(() => checkPath(join(base, "home/token"), "read", rules)).toThrow(
      expect.objectContaining({ code: "path.outside" }),
    );
    expect(() => checkPath(join(base, "homely"), "read", rules)).not.toThrow();
    expect(() => checkPath("/etc/passwd", "read", rules)).not.toThrow();
    expect(() => checkPath("/etc/passwd", "write", rules)).toThrow(expect.objectContaining({ code: "path.outside" }));
    expect(() => checkPath(`${root}2/x`, "write", rules)).toThrow(expect.objectContaining({ code: "path.outside" }));
    expect(() => checkPath(at("src/x"), "write", rules)).not.toThrow();
  });

  test.for([
    ".git/config",
    ".git/HEAD",
    "sub/.git",
    "a/.vscode/x",
    ".npmrc",
    ".GIT/hooks/x",
    ".github/workflows/ci.yml",
    ".yarnrc.yml",
  ])("refuses to write %s, but lets it be read", (name) => {
    expect(() => checkPath(at(name), "write", rules)).toThrow(expect.objectContaining({ code: "path.protected" }));
    expect(() => checkPath(at(name), "read", rules)).not.toThrow();
  });

  test("12.5: a root that has become a link is no root, by neither of its names", async () => {
    await symlink(root, join(base, "link"));
    const linked = { writeRoots: [join(base, "link")], masked: [] };
    for (const file of [join(base, "link/y"), at("y")]) {
      await expect(writeFileInside(file, "1", linked, { createParents: false })).rejects.toMatchObject({
        code: "path.outside",
      });
    }
  });
});

describe("reading", () => {
  test("gives the content, the size and where it really is", async () => {
    await symlink("src", at("alias"));
    expect(await readFileInside(at("alias/a.txt"), rules, reading)).toEqual({
      bytes: Buffer.from("hello\n"),
      sizeBytes: 6,
      realPath: at("src/a.txt"),
    });
    expect(await readFileInside(at("src/a.txt"), rules, { ...reading, maxBytes: 2 })).toMatchObject({
      bytes: Buffer.from("he"),
      sizeBytes: 6,
    });
  });

  test("follows links by hand: up, absolute, chained and to the file itself", async () => {
    await symlink("../../src/a.txt", at("src/up"));
    await symlink(join(root, "src"), at("absolute"));
    await symlink("absolute/a.txt", at("chained"));
    await mkdir(at("deep"));
    await symlink("../src/../src/./a.txt", at("deep/dots"));
    expect(await read(at("absolute/a.txt"))).toBe("hello\n");
    expect(await read(at("chained"))).toBe("hello\n");
    expect(await read(at("deep/dots"))).toBe("hello\n");
    await expect(read(at("src/up"))).rejects.toMatchObject({ details: { errno: "ENOENT" } });
  });

  test("finds nothing behind a mask, whichever way it comes", async () => {
    await symlink(join(base, "home"), at("h"));
    await symlink(join(base, "home/token"), at("t"));
    await symlink("../home", at("r"));
    for (const path of [join(base, "home/token"), join(base, "home"), at("h/token"), at("t"), at("r/token")]) {
      await expect(read(path)).rejects.toMatchObject({ code: "path.outside" });
    }
    await expect(listInside(at("h"), rules, { maxEntries: 10 })).rejects.toMatchObject({ code: "path.outside" });
    await expect(statInside(at("t"), rules)).rejects.toMatchObject({ code: "path.outside" });
  });

  test("refuses what is not a regular file, without waiting for it", async () => {
    execFileSync("sh", ["-c", `mkfifo "$1"`, "sh", at("fifo")]);
    const server = createServer().listen(at("socket"));
    await symlink("/dev/zero", at("zero"));
    await symlink("/proc/self/environ", at("environ"));
    await symlink("loop", at("loop"));
    try {
      for (const name of ["fifo", "socket", "src", "zero", "environ", "loop"]) {
        await expect(read(at(name)), name).rejects.toMatchObject({ code: "path.invalid" });
      }
    } finally {
      server.close();
    }
  });

  test("says in words what is missing or in the way", async () => {
    await expect(read(at("nothing"))).rejects.toMatchObject({ code: "tool.failed", details: { errno: "ENOENT" } });
    await expect(read(at("no/such/folder"))).rejects.toMatchObject({
      code: "tool.failed",
      details: { errno: "ENOENT" },
    });
    await expect(read(at("src/a.txt/x"))).rejects.toMatchObject({ code: "path.invalid" });
  });

  test("stops when it is cancelled", async () => {
    await expect(
      readFileInside(at("src/a.txt"), rules, { maxBytes: 10, signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: "tool.cancelled" });
  });
});

describe("writing", () => {
  test("makes new files and the folders above them, inside only", async () => {
    expect(await write(at("x/y/z.txt"))).toEqual({ realPath: at("x/y/z.txt") });
    expect(await readFile(at("x/y/z.txt"), "utf8")).toBe("new\n");
    await expect(write(join(base, "outside/new"))).rejects.toMatchObject({ code: "path.outside" });
    await expect(write(join(base, "elsewhere/new"))).rejects.toMatchObject({ code: "path.outside" });
    await expect(writeFileInside(at("p/q"), "", rules, { createParents: false })).rejects.toMatchObject({
      details: { errno: "ENOENT" },
    });
    expect(await readdir(base)).toEqual(["home", "outside", "ws"]);
  });

  test("replaces a file as a whole, keeps its mode and leaves no temporary file", async () => {
    await chmod(at("src/a.txt"), 0o750);
    await write(at("src/a.txt"), "changed\n");
    expect((await stat(at("src/a.txt"))).mode & 0o777).toBe(0o750);
    expect(await readFile(at("src/a.txt"), "utf8")).toBe("changed\n");
    expect(await readdir(at("src"))).toEqual(["a.txt"]);
  });

  test("goes through a link inside and leaves the link, but not through one that leads out", async () => {
    await symlink("src/a.txt", at("alias"));
    await write(at("alias"), "through\n");
    expect(await readlink(at("alias"))).toBe("src/a.txt");
    expect(await readFile(at("src/a.txt"), "utf8")).toBe("through\n");
    await symlink(join(base, "outside/file"), at("out"));
    await symlink(join(base, "outside"), at("outdir"));
    await symlink(join(base, "outside/new"), at("dangling"));
    for (const name of ["out", "outdir/file", "outdir/new", "dangling"]) {
      await expect(write(at(name)), name).rejects.toMatchObject({ code: "path.outside" });
    }
    expect(await readdir(join(base, "outside"))).toEqual(["file"]);
    expect(await readFile(join(base, "outside/file"), "utf8")).toBe("outside\n");
  });

  test("into a protected folder fails, also through a link or through another name of the folder", async () => {
    await mkdir(at(".git/hooks"), { recursive: true });
    await symlink(".git/hooks", at("h"));
    for (const name of [".git/hooks/x", "h/x", ".vscode/new", "deep/.npmrc", ".git"]) {
      await expect(write(at(name)), name).rejects.toMatchObject({ code: "path.protected" });
    }
    expect(await readdir(at(".git/hooks"))).toEqual([]);
  });

  test("breaks a hard link instead of changing the other file", async () => {
    await link(join(base, "outside/file"), at("hard"));
    await write(at("hard"), "mine\n");
    expect(await readFile(join(base, "outside/file"), "utf8")).toBe("outside\n");
    expect(await readFile(at("hard"), "utf8")).toBe("mine\n");
  });

  test("over something that is no regular file is refused", async () => {
    execFileSync("sh", ["-c", `mkfifo "$1"`, "sh", at("fifo")]);
    for (const name of ["fifo", "src"])
      await expect(write(at(name)), name).rejects.toMatchObject({ code: "path.invalid" });
    expect((await lstat(at("fifo"))).isFIFO()).toBe(true);
  });

  test("that must be new does not touch what is there", async () => {
    const options = { createParents: false, mustNotExist: true };
    await expect(writeFileInside(at("src/a.txt"), "x", rules, options)).rejects.toMatchObject({
      details: { errno: "EEXIST" },
    });
    await writeFileInside(at("src/b.txt"), "x", rules, options);
    expect((await readdir(at("src"))).toSorted()).toEqual(["a.txt", "b.txt"]);
    const [first, second] = await Promise.allSettled(
      ["1", "2"].map((text) => writeFileInside(at("src/c.txt"), text, rules, options)),
    );
    expect(new Set([first?.status, second?.status])).toEqual(new Set(["fulfilled", "rejected"]));
  });

  test("with an expected content refuses when it has changed", async () => {
    const hash = createHash("sha256").update("hello\n").digest("hex");
    await writeFileInside(at("src/a.txt"), "2\n", rules, { createParents: false, expectedHash: hash });
    await expect(
      writeFileInside(at("src/a.txt"), "3\n", rules, { createParents: false, expectedHash: hash }),
    ).rejects.toMatchObject({ details: { reason: "changed" } });
    expect(await readFile(at("src/a.txt"), "utf8")).toBe("2\n");
    expect(await readdir(at("src"))).toEqual(["a.txt"]);
  });

  test("without a write root is refused everywhere", async () => {
    rules = { writeRoots: [], masked: [] };
    await expect(write(at("src/a.txt"))).rejects.toMatchObject({ code: "path.outside" });
  });
});

test("removing takes a file or a link itself, never a folder or what a link points to", async () => {
  await symlink(join(base, "outside/file"), at("out"));
  await removeFileInside(at("out"), rules);
  expect(await readFile(join(base, "outside/file"), "utf8")).toBe("outside\n");
  await removeFileInside(at("src/a.txt"), rules);
  expect(await readdir(at("src"))).toEqual([]);
  await expect(removeFileInside(at("src"), rules)).rejects.toMatchObject({ code: "path.invalid" });
  await expect(removeFileInside(at("gone"), rules)).rejects.toMatchObject({ details: { errno: "ENOENT" } });
  await expect(removeFileInside(join(base, "outside/file"), rules)).rejects.toMatchObject({ code: "path.outside" });
  await symlink(join(base, "outside"), at("outdir"));
  await expect(removeFileInside(at("outdir/file"), rules)).rejects.toMatchObject({ code: "path.outside" });
});

test("looking at an entry and listing a folder", async () => {
  await symlink("nowhere", at("dangling"));
  expect(await statInside(at("src/a.txt"), rules)).toMatchObject({
    kind: "file",
    sizeBytes: 6,
    realPath: at("src/a.txt"),
  });
  expect(await statInside(root, rules)).toMatchObject({ kind: "directory" });
  expect(await statInside("/", rules)).toMatchObject({ kind: "directory" });
  expect(await statInside(at("nothing"), rules)).toBeUndefined();
  expect(await statInside(at("no/thing"), rules)).toBeUndefined();
  expect(await statInside(at("dangling"), rules)).toBeUndefined();
  const listed = await listInside(root, rules, { maxEntries: 10 });
  expect(listed.entries.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
    { name: "dangling", kind: "symlink" },
    { name: "src", kind: "directory" },
  ]);
  expect(await listInside(root, rules, { maxEntries: 1 })).toMatchObject({ isTruncated: true, entries: [{}] });
  await expect(listInside(at("src/a.txt"), rules, { maxEntries: 1 })).rejects.toMatchObject({ code: "path.invalid" });
});
