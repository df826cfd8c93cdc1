import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHostMemory } from "./host-memory.ts";

async function openFile(): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-memory-"));
  const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
  return { path: join(folder, "cache", "host"), [Symbol.asyncDispose]: dispose };
}

test("what a host gave is remembered until it is forgotten, and nothing else is", async () => {
  await using file = await openFile();
  const memory = openHostMemory(file.path);
  expect(memory.has("namespaces none")).toBe(false);
  memory.keep("namespaces none");
  expect(openHostMemory(file.path).has("namespaces none")).toBe(true);
  expect(memory.has("namespaces all")).toBe(false);
  memory.forget();
  memory.forget();
  expect(memory.has("namespaces none")).toBe(false);
});

test("another boot, another user or another container believes nothing of it, and half a file is nothing", async () => {
  await using file = await openFile();
  const memory = openHostMemory(file.path);
  memory.keep("x");
  const kept = await readFile(file.path, "utf8");
  for (const other of [kept.replace(/^\S/, "#"), kept.slice(0, -3), ""]) {
    await writeFile(file.path, other);
    expect(memory.has("x")).toBe(false);
  }
  await writeFile(file.path, kept);
  const source = `
    const { openHostMemory } = await import(${JSON.stringify(new URL("host-memory.ts", import.meta.url).href)});
    process.stdout.write(String(openHostMemory(${JSON.stringify(file.path)}).has("x")));`;
  const node = [process.execPath, "--conditions=heddle-source", "--input-type=module", "-e", source] as const;
  const [program, ...args] = node;
  expect(spawnSync(program, args, { encoding: "utf8" }).stdout).toBe("true");
  const inside = spawnSync("unshare", ["--user", "--map-root-user", ...node], { encoding: "utf8" });
  expect(inside.stdout).toBe("false");
});
