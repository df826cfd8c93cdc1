import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isHeddleError } from "@heddle/protocol";
import { expect, test } from "vitest";
import { copyFileInside, copyTreeInside, factsInside, makeFolderInside, removeInside } from "./path-trees.ts";

const SWAPPER = fileURLToPath(new URL("../../test/link-swapper.ts", import.meta.url));
const DURATION_MS = process.env["HEDDLE_E2E_FULL"] === "1" ? 5000 : 1000;

async function openBase() {
  const base = await realpath(await mkdtemp(join(tmpdir(), "heddle-trees-")));
  const [root, outside, home] = [join(base, "ws"), join(base, "outside"), join(base, "home")];
  for (const path of [root, outside, home]) await mkdir(path);
  await writeFile(join(outside, "file"), "outside\n");
  await writeFile(join(home, "key"), "secret\n");
  return {
    root,
    outside,
    home,
    rules: { writeRoots: [root], masked: [home] },
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true, maxRetries: 5 }),
  };
}

test(`removing, copying and making folders for ${DURATION_MS / 1000} s (5 with HEDDLE_E2E_FULL=1) while names are swapped for links never gets out`, async ({
  annotate,
}) => {
  await using base = await openBase();
  const folder = join(base.root, "play");
  await mkdir(folder);
  const swapper = spawn(process.execPath, [SWAPPER, folder, base.outside, join(base.outside, "file")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(swapper, "close");
  await once(swapper.stdout, "data");
  const score = { tries: 0, done: 0 };
  const end = performance.now() + DURATION_MS;
  for (let round = 0; performance.now() < end; round += 1) {
    const attempts = [
      () => removeInside(join(folder, "dir/file"), base.rules, { isRecursive: true }),
      () => makeFolderInside(join(folder, `dir/made${round % 5}`), base.rules, { createParents: false }),
      () => copyFileInside(join(folder, "file"), join(folder, "dir/copy"), base.rules),
      () => removeInside(join(folder, "dir/copy"), base.rules, { isRecursive: false }),
      () => copyTreeInside(join(folder, "dir"), join(base.root, `tree${round % 3}`), base.rules),
    ];
    score.tries += 1;
    await attempts[round % attempts.length]?.().then(
      () => (score.done += 1),
      (error: unknown) => {
        if (!isHeddleError(error)) throw error;
      },
    );
  }
  swapper.stdin.end();
  expect(await closed).toEqual([0, null]);
  await annotate(JSON.stringify(score));
  expect(score.done).toBeGreaterThan(0);
  expect(await readdir(base.outside)).toEqual(["file"]);
  expect(await readFile(join(base.outside, "file"), "utf8")).toBe("outside\n");
});

test("a tree with a link in it is removed without what the link leads to", async () => {
  await using base = await openBase();
  await mkdir(join(base.root, "tree/sub"), { recursive: true });
  await symlink(base.outside, join(base.root, "tree/sub/way"));
  await removeInside(join(base.root, "tree"), base.rules, { isRecursive: true });
  expect(await readdir(base.root)).toEqual([]);
  expect(await readdir(base.outside)).toEqual(["file"]);
});

test("a tree that holds what is masked is neither removed nor copied, not even in part", async () => {
  await using base = await openBase();
  const inner = join(base.root, "tree/zz");
  await mkdir(inner, { recursive: true });
  await writeFile(join(base.root, "tree/a"), "a");
  const rules = { ...base.rules, masked: [inner] };
  const gone = removeInside(join(base.root, "tree"), rules, { isRecursive: true });
  await expect(gone).rejects.toThrow("is not available here");
  await expect(copyTreeInside(join(base.root, "tree"), join(base.root, "copy"), rules)).rejects.toThrow(
    "is not available here",
  );
  expect((await readdir(join(base.root, "tree"))).sort()).toEqual(["a", "zz"]);
  await expect(stat(join(base.root, "copy"))).rejects.toThrow("ENOENT");
  expect(() => factsInside(join(base.home, "key"), base.rules)).toThrow("is not available here");
});
