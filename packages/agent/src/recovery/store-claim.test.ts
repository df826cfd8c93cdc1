import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { thisHolder } from "./holder.ts";
import { claimStore } from "./store-claim.ts";

async function openHome(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "heddle-claim-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function plant(home: string, number: number, content: string): Promise<void> {
  await mkdir(join(home, "owner"), { recursive: true });
  await writeFile(join(home, "owner", String(number)), content);
}

test("F09: a second owner is refused and told who the first is, until the first lets go", async () => {
  await using home = await openHome();
  const first = await claimStore(home.path, "heddle serve");
  await expect(claimStore(home.path, "heddle app-server")).rejects.toMatchObject({
    code: "store.owned",
    message: expect.stringContaining(`heddle serve (process ${process.pid})`),
    details: { pid: process.pid, what: "heddle serve" },
  });
  await first[Symbol.asyncDispose]();
  await using second = await claimStore(home.path, "heddle serve");
  expect(second.number).toBeGreaterThan(first.number);
});

test("F09: the claim of a dead process is cleaned up, also when its pid lives again", async () => {
  await using home = await openHome();
  const reused = { ...thisHolder(), startTicks: "1" };
  await plant(home.path, 7, JSON.stringify({ what: "heddle serve", holder: reused }));
  await using claim = await claimStore(home.path, "heddle serve");
  expect(claim.number).toBe(8);
  const left = await readdir(join(home.path, "owner"));
  expect(left.filter((name) => !name.endsWith(".sock"))).toEqual(["8"]);
});

test("F09: of many that find a dead owner, one becomes the owner", async () => {
  await using home = await openHome();
  await plant(home.path, 3, JSON.stringify({ what: "x", holder: { ...thisHolder(), startTicks: "1" } }));
  const settled = await Promise.allSettled(Array.from({ length: 40 }, () => claimStore(home.path, "heddle serve")));
  const refused = settled.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(39);
  for (const { reason } of refused.filter((one) => one.status === "rejected")) {
    expect(reason).toMatchObject({ code: "store.owned" });
  }
});

test("F09: an owner in another pid namespace is not taken for dead", async () => {
  await using home = await openHome();
  await plant(home.path, 1, JSON.stringify({ what: "x", holder: { ...thisHolder(), pidNamespace: "pid:[1]" } }));
  await expect(claimStore(home.path, "heddle serve")).rejects.toMatchObject({
    code: "store.owned",
    message: expect.stringContaining("cannot be seen from here"),
  });
});

test("F09: where a process cannot be seen, its socket tells whether it lives", async () => {
  await using home = await openHome();
  const elsewhere = { ...thisHolder(), pidNamespace: "pid:[1]" };
  const folder = join(home.path, "owner");
  await mkdir(folder);
  const living = createServer().listen(join(folder, "0a.sock"));
  await once(living, "listening");
  await plant(home.path, 1, JSON.stringify({ what: "heddle serve", holder: elsewhere, socket: "0a.sock" }));
  await expect(claimStore(home.path, "heddle serve")).rejects.toMatchObject({ code: "store.owned" });
  living.close();
  await once(living, "close");
  await using claim = await claimStore(home.path, "heddle serve");
  expect(claim.number).toBe(2);
});

test("nothing of a claim that was refused or released keeps a process or a socket", async () => {
  await using home = await openHome();
  const first = await claimStore(home.path, "heddle serve");
  await expect(claimStore(home.path, "heddle serve")).rejects.toMatchObject({ code: "store.owned" });
  const folder = join(home.path, "owner");
  expect((await readdir(folder)).filter((name) => name.endsWith(".sock"))).toHaveLength(1);
  await first[Symbol.asyncDispose]();
  expect(await readdir(folder)).toEqual(["1"]);
});

test("a claim that was cut off by a crash stands in nobody's way", async () => {
  await using home = await openHome();
  await plant(home.path, 2, '{"what":"hed');
  await using claim = await claimStore(home.path, "heddle serve");
  expect(claim.number).toBe(3);
});
