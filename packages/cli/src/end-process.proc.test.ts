import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const MAIN = join(import.meta.dirname, "main.ts");
const SOURCE = "--conditions=heddle-source";

async function scratch(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "heddle-end-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

test("12.15: the process ends with its code although one of its threads never does", async () => {
  await using folder = await scratch();
  const fifo = join(folder.path, "fifo");
  execFileSync("mkfifo", [fifo]);
  // Nobody writes there, so the thread that opens it waits for ever, and `process.exit` would wait for the thread.
  const preload = join(folder.path, "stuck.cjs");
  await writeFile(preload, `require("fs").open(${JSON.stringify(fifo)}, "r", () => undefined);\n`);
  for (const [args, expected] of [
    [["--version"], 0],
    [["no-such-word"], 2],
  ] as const) {
    const child = spawn(process.execPath, [SOURCE, "--require", preload, MAIN, ...args], { timeout: 20_000 });
    const said: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => said.push(part));
    child.stderr.on("data", (part: Buffer) => said.push(part));
    const [code, signal] = await once(child, "close");
    expect([code, signal]).toEqual([expected, null]);
    expect(Buffer.concat(said).toString()).toMatch(/^heddle[ :]/);
  }
}, 60_000);

test("12.15: whoever shares its pipes finds them as they were", async () => {
  const [node, source, main] = [process.execPath, SOURCE, MAIN];
  // One write of a megabyte to a pipe that does not wait brings only as much as the pipe holds.
  const after = 'require("fs").writeSync(1, "y".repeat(1024 * 1024))';
  const script = '("$0" "$1" "$2" --version; "$0" -e "$3") | wc -c';
  const child = spawn("sh", ["-c", script, node, source, main, after], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (part: Buffer) => out.push(part));
  child.stderr.on("data", (part: Buffer) => err.push(part));
  await once(child, "close");
  expect(Buffer.concat(err).toString()).toBe("");
  expect(Number(Buffer.concat(out).toString().trim().split("\n").at(-1))).toBeGreaterThan(1024 * 1024);
}, 60_000);
