import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { openScratch } from "./scratch.ts";

const SCRATCH = new URL("scratch.ts", import.meta.url).href;
const PROCESSES = 6;
const ROUNDS = 150;

test("processes that open and clean up beside each other never take a living one's folder away", async () => {
  const parent = await mkdtemp(join(tmpdir(), "heddle-scratch-"));
  try {
    const source = `
      const { openScratch } = await import(${JSON.stringify(SCRATCH)});
      for (let round = 0; round < ${ROUNDS}; round += 1) {
        await using scratch = await openScratch(${JSON.stringify(parent)});
      }`;
    const ends = Array.from({ length: PROCESSES }, async () => {
      const child = spawn(process.execPath, ["--conditions=heddle-source", "--input-type=module", "-e", source]);
      const [[code], stderr] = await Promise.all([once(child, "close"), text(child.stderr)]);
      return { code, stderr };
    });
    expect(await Promise.all(ends)).toEqual(ends.map(() => ({ code: 0, stderr: "" })));
    expect(await readdir(parent)).toEqual([]);
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
});

/** Opened in a process of its own, behind mounts of its own; what it says of the scratch, and what is left of it. */
async function scratchWith(mounts: string): Promise<{ folders: string[]; tmp: string; left: string[] }> {
  const source = `
    const { existsSync, readdirSync } = await import("node:fs");
    const { openScratch } = await import(${JSON.stringify(SCRATCH)});
    const { folders, tmp, ...scratch } = openScratch();
    await scratch[Symbol.asyncDispose]();
    const inMemory = existsSync("/dev/shm/heddle-0") ? readdirSync("/dev/shm/heddle-0") : [];
    console.log(JSON.stringify({ folders, tmp, left: [...folders.filter((path) => existsSync(path)), ...inMemory] }));`;
  const node = [process.execPath, "--conditions=heddle-source", "--input-type=module", "-e", source];
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", `${mounts} && exec "$@"`, "sh", ...node];
  const child = spawn("unshare", args);
  const [[code], out, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(out);
}

test("a handful of names is kept in memory, temporary files on disk, and both go", async () => {
  const { folders, tmp, left } = await scratchWith("mount -t tmpfs none /dev/shm");
  // Root is the user inside.
  expect(folders).toEqual([expect.stringMatching(/^\/dev\/shm\/heddle-0\/heddle-sandbox-/), join(tmp, "..")]);
  expect(tmp.startsWith(join(tmpdir(), "heddle-0/heddle-sandbox-"))).toBe(true);
  expect(left).toEqual([]);
});

test.each([
  ["is full", "mount -t tmpfs -o nr_inodes=6 none /dev/shm"],
  ["is not in memory", "mount --bind /usr /dev/shm"],
])("all of it is on disk where /dev/shm %s", async (_what, mounts) => {
  const { folders, tmp, left } = await scratchWith(mounts);
  expect(folders).toEqual([join(tmp, "..")]);
  expect(left).toEqual([]);
});

/** Nobody's number: it owns no file and no process. */
const OTHER_UID = 61_234;
const isRoot = process.getuid?.() === 0;
const canSwitchUser = isRoot && spawnSync("true", { uid: OTHER_UID, gid: OTHER_UID }).status === 0;
const OWN = `heddle-${process.getuid?.() ?? 0}`;

/** Opens and closes one in a process of its own that is given up on: what hangs must not hang the test. */
function openIn(shared: string): { folders: string[]; status: number | null } {
  const source = `
    const { openScratch } = await import(${JSON.stringify(SCRATCH)});
    await using scratch = openScratch();
    console.log(JSON.stringify(scratch.folders));`;
  const args = ["--conditions=heddle-source", "--input-type=module", "-e", source];
  const env = { ...process.env, TMPDIR: shared };
  const { stdout, status } = spawnSync(process.execPath, args, { env, encoding: "utf8", timeout: 20_000 });
  return { folders: status === 0 ? JSON.parse(stdout) : [], status };
}

async function sharedFolder(): Promise<string> {
  const shared = await mkdtemp(join(tmpdir(), "heddle-shared-"));
  await chmod(shared, 0o1777);
  return shared;
}

/** One of each kind that can stand under a name, made by another user, open to all. */
const PLANTS: readonly [string, string][] = [
  ["fifo", 'mkfifo -m 666 "$1"'],
  [
    "folder with a fifo as owner",
    'mkdir -m 777 "$1" && mkfifo -m 666 "$1/owner" && mkdir "$1/heddle-sandbox-x" && mkfifo "$1/heddle-sandbox-x/owner"',
  ],
  ["link to a folder", 'mkdir -m 777 "$2" && ln -s "$2" "$1"'],
  ["link to nowhere", 'ln -s "$2" "$1"'],
  ["file", 'echo x > "$1"'],
];

test.runIf(canSwitchUser).each(PLANTS)(
  `12.8: another user's %s under any name of a scratch is neither waited for nor used${canSwitchUser ? "" : " (needs root)"}`,
  async (_what, plant) => {
    const shared = await sharedFolder();
    try {
      for (const [index, name] of [OWN, "heddle-sandbox-x", "heddle-sandbox-pipes-x"].entries()) {
        const args = ["-c", plant, "sh", join(shared, name), join(shared, `target-${index}`)];
        execFileSync("sh", args, { uid: OTHER_UID, gid: OTHER_UID });
      }
      const before = (await readdir(shared, { recursive: true })).toSorted();
      const { folders, status } = openIn(shared);
      expect(status).toBe(0);
      expect(folders.at(-1)).toMatch(new RegExp(`^${shared}/heddle-sandbox-[^/]*$`));
      expect((await readdir(shared, { recursive: true })).toSorted()).toEqual(before);
    } finally {
      await rm(shared, { recursive: true, force: true });
    }
  },
);

test("12.8: the user's own folder is private, and nothing in it is waited for", async () => {
  const shared = await sharedFolder();
  try {
    const own = join(shared, OWN);
    await mkdir(own, { mode: 0o700 });
    for (const name of ["a", "b", "c", "d"]) await mkdir(join(own, `heddle-sandbox-${name}`));
    execFileSync("mkfifo", [join(own, "heddle-sandbox-a/owner"), join(own, "heddle-sandbox-e")]);
    await symlink("/dev/zero", join(own, "heddle-sandbox-b/owner"));
    await mkdir(join(own, "heddle-sandbox-c/owner"));
    await writeFile(join(own, "heddle-sandbox-d/owner"), "1 2 another-boot namespace");
    const { folders, status } = openIn(shared);
    expect(status).toBe(0);
    expect(folders.at(-1)?.startsWith(`${own}/heddle-sandbox-`)).toBe(true);
    // Only what says that it was left is removed; the others are too young to be called left.
    expect((await readdir(own)).toSorted()).toEqual(["a", "b", "c", "e"].map((name) => `heddle-sandbox-${name}`));
    await chmod(own, 0o755);
    expect(openIn(shared).folders.at(-1)?.startsWith(`${own}/`)).toBe(false);
  } finally {
    await rm(shared, { recursive: true, force: true });
  }
});

test("12.8: what is made is open to its user alone", async () => {
  const shared = await sharedFolder();
  try {
    openIn(shared);
    expect((await lstat(join(shared, OWN))).mode & 0o777).toBe(0o700);
  } finally {
    await rm(shared, { recursive: true, force: true });
  }
});

test("12.8: what commands leave behind is removed, be it closed to its owner or too deep to name", async () => {
  const parent = await mkdtemp(join(tmpdir(), "heddle-scratch-left-"));
  const scratch = openScratch(parent);
  const dig =
    "for (let i = 0; i < 400; i += 1) { fs.mkdirSync('deep-deep-deep'); process.chdir('deep-deep-deep'); } " +
    "fs.writeFileSync('x', '')";
  execFileSync(process.execPath, ["-e", dig], { cwd: scratch.tmp });
  await mkdir(join(scratch.varTmp, "cache"));
  await writeFile(join(scratch.varTmp, "cache", "module"), "");
  await chmod(join(scratch.varTmp, "cache"), 0o555);
  await scratch[Symbol.asyncDispose]();
  expect(await readdir(parent)).toEqual([]);
  await rm(parent, { recursive: true });
});

test("13: a folder for temporary files that was put in the place of the first one is refused, and nothing is made in it", async () => {
  const above = await mkdtemp(join(tmpdir(), "heddle-swapped-"));
  const { TMPDIR } = process.env;
  const [temporary, outside] = [join(above, "tmp"), join(above, "outside")];
  try {
    process.env["TMPDIR"] = temporary;
    await openScratch()[Symbol.asyncDispose]();
    await mkdir(outside);
    await rename(temporary, `${temporary}-2`);
    for (const put of [() => symlink("outside", temporary), () => mkdir(temporary)]) {
      await put();
      expect(openScratch).toThrow(expect.objectContaining({ code: "sandbox.failed" }));
      expect([await readdir(outside), await readdir(temporary)]).toEqual([[], []]);
      await rm(temporary, { recursive: true });
    }
    await rename(`${temporary}-2`, temporary);
    await openScratch()[Symbol.asyncDispose]();
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
    await rm(above, { recursive: true, force: true });
  }
});
