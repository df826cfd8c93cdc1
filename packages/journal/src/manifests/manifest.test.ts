import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testHome } from "../suite/journal.samples.ts";
import { changedPaths, loadManifest, storeManifest, takeManifest } from "./manifest.ts";

const { signal } = new AbortController();

function fill(root: string): void {
  mkdirSync(join(root, "deep", "er"), { recursive: true });
  writeFileSync(join(root, "deep", "er", "a"), "a");
  writeFileSync(join(root, "b"), "b", { mode: 0o644 });
  symlinkSync("/etc", join(root, "link"));
}

test("every file, folder and link is listed with its hash and mode, and links are not followed", async () => {
  await using home = await testHome();
  const root = join(home.path, "root");
  fill(root);
  const { files, isCut } = await takeManifest([root, join(root, "deep"), join(root, "none")], { signal });
  expect(Object.keys(files).map((path) => path.slice(root.length))).toEqual([
    "",
    "/link",
    "/deep",
    "/deep/er",
    "/deep/er/a",
    "/b",
  ]);
  expect(files[join(root, "b")]).toEqual({
    kind: "file",
    mode: 0o644,
    sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d",
  });
  expect(files[join(root, "link")]).toMatchObject({ kind: "link" });
  expect(isCut).toBe(false);
});

test("content, mode, kind, what is new and what is gone differ; the rest does not", async () => {
  await using home = await testHome();
  const root = join(home.path, "root");
  fill(root);
  const before = await takeManifest([root], { signal });
  expect(changedPaths(before, await takeManifest([root], { signal }))).toEqual([]);
  writeFileSync(join(root, "deep", "er", "a"), "other");
  chmodSync(join(root, "b"), 0o755);
  rmSync(join(root, "link"));
  writeFileSync(join(root, "new"), "");
  const after = await takeManifest([root], { signal });
  expect(changedPaths(before, after).map((path) => path.slice(root.length))).toEqual([
    "/b",
    "/deep/er/a",
    "/link",
    "/new",
  ]);
  // Of folders that only one of them looked at nothing is said.
  const inner = await takeManifest([join(root, "deep")], { signal });
  expect(changedPaths(inner, after)).toEqual([]);
});

test("a list is bounded in files and bytes, says so, and nothing is concluded from what it leaves out", async () => {
  await using home = await testHome();
  const root = join(home.path, "root");
  fill(root);
  const whole = await takeManifest([root], { signal });
  const few = await takeManifest([root], { signal, maxFiles: 3 });
  expect([few.isCut, Object.keys(few.files).length]).toEqual([true, 3]);
  expect(changedPaths(whole, few)).toEqual([]);
  writeFileSync(join(root, "large"), Buffer.alloc(1000));
  expect((await takeManifest([root], { signal, maxBytes: 999 })).isCut).toBe(true);
  await expect(takeManifest([root], { signal: AbortSignal.abort() })).rejects.toThrow("abort");
});

test("a list is kept under its own hash, once, and one that was changed is not believed", async () => {
  await using home = await testHome();
  fill(join(home.path, "root"));
  const manifest = await takeManifest([join(home.path, "root")], { signal });
  const name = await storeManifest(home.path, manifest);
  expect(await storeManifest(home.path, manifest)).toBe(name);
  expect(readdirSync(join(home.path, "manifests"))).toEqual([`${name}.json`]);
  expect(await loadManifest(home.path, name)).toEqual(manifest);
  writeFileSync(join(home.path, "manifests", `${name}.json`), "{}");
  expect(await loadManifest(home.path, name)).toBeUndefined();
  for (const other of ["0".repeat(64), "../keys/journal.key"])
    expect(await loadManifest(home.path, other)).toBeUndefined();
});
