/** 12.2: the owner's protected paths that no mount holds: found when they change, and put back. */
import { execFileSync } from "node:child_process";
import { lstatSync } from "node:fs";
import {
  appendFile,
  chmod,
  link,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EVIL_CONFIG, git, openGuardWorld, type GuardWorld } from "../../test/guard-world.ts";

let world: GuardWorld;
let root: string;
let put: GuardWorld["put"];

beforeEach(async () => {
  world = await openGuardWorld();
  ({ root, put } = world);
});

afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

/** Small ones, so that a test meets them soon. */
const BOUNDS = { mounts: 8, entries: 400, bytes: 600_000 };

describe("12.2: a file with two names", () => {
  test("is no configuration of a new repository", async () => {
    const { look } = await world.start();
    git(root, "init", "-q", "new");
    expect(await look()).toEqual([]);
    await link(join(root, "new/.git/config"), join(root, "other-name"));
    expect(await look()).toEqual(["new/.git/config"]);
  });

  test("is put back as it was when it is written by the other", async () => {
    git(root, "init", "-q");
    await put(".vscode/deep/tasks.json", "owner's\n");
    await chmod(join(root, ".vscode/deep/tasks.json"), 0o640);
    await link(join(root, ".vscode/deep/tasks.json"), join(root, "by-another-name"));
    await link(join(root, ".git/config"), join(root, "config-too"));
    const before = await readFile(join(root, ".git/config"), "utf8");
    const { look, protectedPaths } = await world.start();
    expect(protectedPaths).toContain(join(root, ".vscode"));
    await appendFile(join(root, "by-another-name"), "evil\n");
    await appendFile(join(root, "config-too"), EVIL_CONFIG);
    expect(await look()).toEqual([".git/config", ".vscode/deep/tasks.json"]);
    expect(await readFile(join(root, ".vscode/deep/tasks.json"), "utf8")).toBe("owner's\n");
    expect(lstatSync(join(root, ".vscode/deep/tasks.json")).mode & 0o777).toBe(0o640);
    expect(await readFile(join(root, ".git/config"), "utf8")).toBe(before);
    await appendFile(join(root, "config-too"), EVIL_CONFIG);
    expect(await look()).toEqual([]);
  });
});

describe("12.2: more protected paths than can be mounted", () => {
  /** In vendored folders, so that they come after everything else. */
  async function fillUp(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await put(`node_modules/p${index}/.npmrc`, `registry=${index}\n`);
  }

  test("are kept: every change below them is found and undone", async () => {
    await fillUp(8);
    await put("node_modules/a/b/.vscode/tasks.json", "owner's\n");
    await symlink("tasks.json", join(root, "node_modules/a/b/.vscode/link"));
    git(root, "init", "-q", "node_modules/a/b/repo");
    await put("node_modules/a/b/repo/.git/hooks/pre-commit", "#!/bin/sh\n");
    const { look, protectedPaths } = await world.start(BOUNDS);
    expect(protectedPaths).toHaveLength(8);
    const at = (name: string): string => join(root, "node_modules/a/b", name);
    await writeFile(at(".vscode/tasks.json"), "evil!!!\n");
    await writeFile(at(".vscode/more.json"), "evil\n");
    await rm(at(".vscode/link"));
    await appendFile(at("repo/.git/hooks/pre-commit"), "evil\n");
    await appendFile(at("repo/.git/config"), EVIL_CONFIG);
    await rm(at("repo/.git/info"), { recursive: true });
    expect(await look()).toEqual(
      [".vscode", "repo/.git/config", "repo/.git/hooks", "repo/.git/info"].map((name) => `node_modules/a/b/${name}`),
    );
    expect(await readdir(at(".vscode"))).toEqual(["link", "tasks.json"]);
    expect(await readFile(at(".vscode/tasks.json"), "utf8")).toBe("owner's\n");
    expect(await readlink(at(".vscode/link"))).toBe("tasks.json");
    expect(await readFile(at("repo/.git/hooks/pre-commit"), "utf8")).toBe("#!/bin/sh\n");
    git(at("repo"), "status");
    expect(await look()).toEqual([]);
    expect(await look({ isLast: true })).toEqual([]);
  });

  test("may be moved or removed with the folder they are in, and made again as they were", async () => {
    await fillUp(8);
    await put("node_modules/a/b/.npmrc", "owner's\n");
    await put("node_modules/a/c/.npmrc", "owner's\n");
    const { look } = await world.start(BOUNDS);
    await rename(join(root, "node_modules/a/b"), join(root, "node_modules/a/moved"));
    await rm(join(root, "node_modules/a/c"), { recursive: true });
    expect(await look()).toEqual([]);
    await put("node_modules/a/c/.npmrc", "evil\n");
    expect(await look()).toEqual(["node_modules/a/c/.npmrc"]);
    await writeFile(join(root, "node_modules/a/moved/.npmrc"), "evil\n");
    expect(await look()).toEqual(["node_modules/a/moved/.npmrc"]);
    expect(await readFile(join(root, "node_modules/a/moved/.npmrc"), "utf8")).toBe("owner's\n");
  });

  test("the repositories of an earlier run do not push the owner's hooks out", async () => {
    git(root, "init", "-q");
    await put(".git/hooks/pre-commit", "#!/bin/sh\n");
    await put(".vscode/tasks.json");
    git(root, "init", "-q", "--bare", "r0");
    for (let index = 1; index < 13; index += 1) execFileSync("cp", ["-r", join(root, "r0"), join(root, `r${index}`)]);
    const { look, protectedPaths } = await world.start(BOUNDS);
    expect(protectedPaths).toHaveLength(8);
    for (const name of [".git/hooks", ".git/config", ".git/info", ".vscode"])
      expect(protectedPaths).toContain(join(root, name));
    await appendFile(join(root, "r12/config"), EVIL_CONFIG);
    await appendFile(join(root, "r11/config"), EVIL_CONFIG);
    await put("r10/hooks/pre-commit");
    expect((await look()).length).toBe(3);
  });

  test.for([
    ["entries", 401, "x"],
    ["bytes", 1, "x".repeat(600_001)],
  ] as const)("and more %s than can be kept are refused, with what to do", async ([, count, content]) => {
    await fillUp(8);
    for (let index = 0; index < count; index += 1) await put(`node_modules/z/z/.vscode/${index}`, content);
    await expect(world.start(BOUNDS)).rejects.toMatchObject({
      code: "sandbox.unavailable",
      message: expect.stringMatching(/node_modules\/z\/z\/\.vscode would be one too many\. Remove/),
    });
  });

  test("256 are mounted otherwise", async () => {
    for (let index = 0; index < 260; index += 1) await mkdir(join(root, `p${index}/.idea`), { recursive: true });
    expect((await world.start()).protectedPaths).toHaveLength(256);
  });
});
