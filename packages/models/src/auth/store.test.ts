import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { apiKey, openAuthHome } from "../../test/auth-home.ts";
import { openCredentialStore } from "./store.ts";
import { CANARY } from "./testing.ts";

const KEY = { owner: "local", provider: "openai", profile: "default" };

describe("O1: the file is private", () => {
  test("folder, file and lock are born with their modes", async () => {
    await using at = await openAuthHome();
    const store = openCredentialStore({ home: at.home });
    expect(await store.list()).toEqual([]);
    expect(await lstat(at.home).catch(() => "absent")).toBe("absent");
    await store.change(KEY, () => apiKey("openai"));
    expect((await stat(at.home)).mode & 0o777).toBe(0o700);
    expect((await stat(at.file)).mode & 0o777).toBe(0o600);
    expect((await stat(path.join(at.home, "credentials.lock"))).mode & 0o777).toBe(0o600);
    expect((await readdir(at.home)).toSorted()).toEqual(["credentials.json", "credentials.lock"]);
    expect(await store.get(KEY)).toEqual(apiKey("openai"));
  });

  test.each([
    [
      "the folder",
      async (at: Awaited<ReturnType<typeof openAuthHome>>) => {
        await mkdir(path.join(at.root, "real"), { mode: 0o700 });
        await symlink(path.join(at.root, "real"), at.home);
      },
    ],
    [
      "the file",
      async (at: Awaited<ReturnType<typeof openAuthHome>>) => {
        await mkdir(at.home, { mode: 0o700 });
        await writeFile(path.join(at.root, "target"), "", { mode: 0o600 });
        await symlink(path.join(at.root, "target"), at.file);
      },
    ],
    [
      "the lock",
      async (at: Awaited<ReturnType<typeof openAuthHome>>) => {
        await mkdir(at.home, { mode: 0o700 });
        await symlink(path.join(at.root, "target"), path.join(at.home, "credentials.lock"));
      },
    ],
  ])("a link in place of %s is refused and nothing is written through it", async (_what, plant) => {
    await using at = await openAuthHome();
    await plant(at);
    const change = openCredentialStore({ home: at.home }).change(KEY, () => apiKey("openai"));
    await expect(change).rejects.toMatchObject({
      code: "credentials.unsafe",
      message: expect.stringContaining("is a link"),
    });
    expect(await readFile(path.join(at.root, "target"), "utf8").catch(() => "")).toBe("");
    expect(await readdir(path.join(at.root, "real")).catch(() => [])).toEqual([]);
  });

  test("what others may read is refused with the command that fixes it", async () => {
    await using at = await openAuthHome();
    const store = openCredentialStore({ home: at.home });
    await store.change(KEY, () => apiKey("openai"));
    await chmod(at.file, 0o640);
    await expect(store.get(KEY)).rejects.toMatchObject({
      code: "credentials.unsafe",
      message: expect.stringContaining(`chmod 600 '${at.file}'`),
    });
    await chmod(at.file, 0o600);
    await chmod(at.home, 0o750);
    await expect(store.get(KEY)).rejects.toThrow(`chmod 700 '${at.home}'`);
    await expect(store.change(KEY, () => undefined)).rejects.toMatchObject({ code: "credentials.unsafe" });
    await chmod(at.home, 0o700);
    expect(await store.get(KEY)).toEqual(apiKey("openai"));
  });
});

describe("O4: entries", () => {
  test("are kept apart by owner, provider and profile", async () => {
    await using at = await openAuthHome();
    const store = openCredentialStore({ home: at.home });
    const keys = [KEY, { ...KEY, owner: "eve" }, { ...KEY, provider: "anthropic" }, { ...KEY, profile: "work" }];
    for (const [number, key] of keys.entries())
      await store.change(key, () => ({ ...apiKey("x", `key-${number}`), ...key }));
    for (const [number, key] of keys.entries()) expect(await store.get(key)).toMatchObject({ key: `key-${number}` });
    await store.change(keys[1] ?? KEY, () => undefined);
    expect((await store.list()).map((entry) => "key" in entry && entry.key)).toEqual(["key-0", "key-2", "key-3"]);
    await expect(store.get({ ...KEY, profile: "a:b" })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  test.each([
    ["of a newer document", `{"version":2,"entries":[],"more":1}`, "store.newer"],
    ["with an entry of a newer version", `{"version":1,"entries":[{"type":"apiKey","v":2}]}`, "store.newer"],
    ["with an entry of an unknown type", `{"version":1,"entries":[{"type":"passkey","v":1}]}`, "store.newer"],
    ["cut short", `{"version":1,"entries":[{"type":"apiKey","key":"${CANARY}`, "store.damaged"],
    ["that is empty", "", "store.damaged"],
    ["of another kind", "[]", "store.damaged"],
    ["with a field too many", `{"version":1,"entries":[],"key":"${CANARY}"}`, "store.damaged"],
  ])("a file %s is refused and left as it is", async (_what, text, code) => {
    await using at = await openAuthHome();
    await mkdir(at.home, { mode: 0o700 });
    await writeFile(at.file, text, { mode: 0o600 });
    const store = openCredentialStore({ home: at.home });
    const reading = await store.list().catch((error: unknown) => error);
    expect(reading).toMatchObject({ code });
    expect(String(reading)).not.toContain(CANARY);
    await expect(store.change(KEY, () => apiKey("openai"))).rejects.toMatchObject({ code });
    await expect(store.change(KEY, () => undefined)).rejects.toMatchObject({ code });
    expect(await readFile(at.file, "utf8")).toBe(text);
  });

  test("what a decision throws leaves the file as it was", async () => {
    await using at = await openAuthHome();
    const store = openCredentialStore({ home: at.home });
    await store.change(KEY, () => apiKey("openai"));
    const before = await readFile(at.file, "utf8");
    await expect(
      store.change(KEY, () => {
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(await readFile(at.file, "utf8")).toBe(before);
  });
});

test("O3: changes of one process take turns, and waiting has a deadline", async () => {
  await using at = await openAuthHome();
  const store = openCredentialStore({ home: at.home });
  const profiles = Array.from({ length: 12 }, (_, number) => `p${number}`);
  await Promise.all(
    profiles.map((profile) => store.change({ ...KEY, profile }, () => ({ ...apiKey("openai"), profile }))),
  );
  expect(await store.list()).toHaveLength(12);
  const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
  const entered = Promise.withResolvers<void>();
  const holding = store.change(KEY, () => {
    entered.resolve();
    return held;
  });
  await entered.promise;
  const hurried = openCredentialStore({ home: at.home, lockWaitMs: 50 });
  await expect(hurried.change(KEY, () => undefined)).rejects.toMatchObject({ code: "store.busy" });
  expect(await hurried.list()).toHaveLength(12);
  const control = new AbortController();
  const waiting = store.change(KEY, () => undefined, { signal: control.signal });
  control.abort(new Error("not worth the wait"));
  await expect(waiting).rejects.toThrow("not worth the wait");
  release(undefined);
  await holding;
});
