/**
 * F08: a store that was damaged from outside. Everything acknowledged that is gone or changed is found and named, a
 * damaged store takes nothing new, its good part can still be read, and no file is recreated, cut or fixed.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, open, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { execArgs, jsonLines, openWorld, refusals, run, type World } from "./world.ts";

let world: World;
let script = "";
/** Written, closed and folded into the database file. */
let oldThread = "";
/** Acknowledged, with its end, and still in the WAL: its process was killed. */
let newThread = "";

beforeAll(async () => {
  world = await openWorld();
  const calls = [{ tool: "bash", args: { command: "echo working >> effects.log" } }];
  script = await world.file("script.json", JSON.stringify([{ text: "I begin.", calls }, { text: "done" }]));
  oldThread = await runOnce({});
  newThread = await runOnce({ HEDDLE_FAILPOINT: "turn.after-complete=kill" });
  expect((await stat(path.join(world.home, "heddle.db-wal"))).size).toBeGreaterThan(50_000);
});

afterAll(() => world[Symbol.asyncDispose]());

async function runOnce(env: Record<string, string>): Promise<string> {
  const { stdout, code, signal } = await run(execArgs("--script", script), { world, env });
  expect(code ?? signal).toBe(env["HEDDLE_FAILPOINT"] === undefined ? 0 : "SIGKILL");
  return jsonLines(stdout)[0]?.thread_id ?? "";
}

interface Files {
  readonly database: string;
  readonly wal: string;
  readonly shm: string;
}

type DamageCase = readonly [what: string, damage: (files: Files) => Promise<void>, named: RegExp];

const IN_WAL: readonly DamageCase[] = [
  [
    "the WAL is cut in half",
    async ({ wal }) => truncate(wal, Math.floor((await stat(wal)).size / 2)),
    /head_mismatch|truncated_before_checkpoint/,
  ],
  [
    "the end of the WAL is zeroed",
    async ({ wal }) => overwrite(wal, -3 * 4120, Buffer.alloc(3 * 4120)),
    /head_mismatch|truncated_before_checkpoint/,
  ],
  [
    "one byte in the middle of the WAL is flipped",
    async ({ wal }) => flip(wal, 0.5),
    /head_mismatch|truncated_before_checkpoint/,
  ],
  [
    "one byte at the beginning of the WAL is flipped",
    async ({ wal }) => flip(wal, 0.001),
    /head_mismatch|truncated_before_checkpoint/,
  ],
  ["the WAL is deleted", async ({ wal }) => rm(wal), /head_mismatch|truncated_before_checkpoint/],
  [
    "the WAL and its index are deleted",
    async ({ wal, shm }) => {
      await rm(wal);
      await rm(shm, { force: true });
    },
    /head_mismatch|truncated_before_checkpoint/,
  ],
];

describe("F08 what was acknowledged and lay in the WAL", () => {
  test.each(IN_WAL)(
    "%s: verify names the first loss, exec refuses, the old thread can be read, no file changes (G8)",
    async (_what, damage, named) => {
      await using home = await damagedHome(damage);
      const before = await home.manifest();
      await expectVerdict(home, named, newThread);
      await expectRefusal(home);
      await expectReadable(home, oldThread);
      expect(await home.manifest()).toEqual(before);
    },
  );

  test("the index of the WAL is overwritten with garbage: it is only an index, nothing is lost", async () => {
    await using home = await damagedHome(({ shm }) => writeFile(shm, Buffer.alloc(32_768, 0xa5)));
    expect(await heddle(home, "verify")).toMatchObject({ code: 0, stdout: expect.stringContaining("clean") });
    await expectReadable(home, newThread);
    expect(await heddle(home, ...execArgs("--script", script))).toMatchObject({ code: 0 });
    expect(await heddle(home, "verify")).toMatchObject({ code: 0 });
  });
});

test("F08 one byte of an old event in the database file is flipped: verify names thread and event, and touches no file (G8)", async () => {
  await using home = await damagedHome(({ database }) => flipAt(database, "echo working"));
  const before = await home.manifest();
  await expectVerdict(home, /altered/, oldThread);
  expect(await home.manifest()).toEqual(before);
  await expectReadable(home, oldThread);
});

describe("F08 what lies in the database file", () => {
  // Whoever closes the store last folds the WAL into the file.
  beforeAll(async () => expect(await run(["threads", "list"], { world })).toMatchObject({ code: 0 }));

  test.each<DamageCase>([
    [
      "the header is overwritten",
      async ({ database }) => overwrite(database, 0, Buffer.alloc(100, 0x41)),
      /file_corrupt/,
    ],
    [
      "the file is cut in half",
      async ({ database }) => truncate(database, Math.floor((await stat(database)).size / 2)),
      /corrupt|head_mismatch/,
    ],
    ["the file is emptied", async ({ database }) => truncate(database, 0), /corrupt|head_mismatch/],
    [
      "database and WAL are deleted",
      async ({ database, wal, shm }) => {
        await Promise.all([database, wal, shm].map((file) => rm(file, { force: true })));
      },
      /head_mismatch|truncated_before_checkpoint/,
    ],
  ])("%s: verify says so, exec refuses, nothing is created in its place (G8)", async (_what, damage, named) => {
    await using home = await damagedHome(damage);
    const before = await home.manifest();
    const verdict = await heddle(home, "verify");
    expect(verdict).toMatchObject({ code: 2, stdout: expect.stringMatching(named) });
    await expectRefusal(home);
    expect(await home.manifest()).toEqual(before);
  });
});

describe("F08 files beside the database", () => {
  test("the witness ends in half a line: that is a crash, not a loss", async () => {
    await using home = await damagedHome(async () => undefined);
    const witness = path.join(home.path, "witness.log");
    await truncate(witness, (await stat(witness)).size - 20);
    expect(await heddle(home, "verify")).toMatchObject({ code: 0 });
    expect(await heddle(home, ...execArgs("--script", script))).toMatchObject({ code: 0 });
  });

  test("a checkpoint was changed: verify does not take it for signed", async () => {
    await using home = await damagedHome(async () => undefined);
    const file = path.join(home.path, "checkpoints", `${oldThread}.jsonl`);
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace(/"version":\d+/, '"version":3'));
    expect(await heddle(home, "verify")).toMatchObject({ code: 2, stdout: expect.stringContaining("checkpoint") });
  });
});

interface DamagedHome extends AsyncDisposable {
  readonly path: string;
  /** Size and hash of everything that holds evidence. */
  manifest(): Promise<Record<string, string>>;
}

let copies = 0;

async function damagedHome(damage: (files: Files) => Promise<unknown>): Promise<DamagedHome> {
  copies += 1;
  const home = path.join(world.root, `damaged-${copies}`);
  await cp(world.home, home, { recursive: true });
  const database = path.join(home, "heddle.db");
  await damage({ database, wal: `${database}-wal`, shm: `${database}-shm` });
  return {
    path: home,
    manifest: () => manifestOf(home),
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  };
}

async function manifestOf(home: string): Promise<Record<string, string>> {
  const manifest: Record<string, string> = {};
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(home, file);
    // The index of the WAL is made anew by whoever opens the database; compiled code is a cache.
    if (!entry.isFile() || name === "heddle.db-shm" || name.startsWith("cache")) continue;
    const bytes = await readFile(file);
    // A WAL that was deleted may come back empty: that is the mark of an open connection, not of content.
    if (name === "heddle.db-wal" && bytes.length === 0) continue;
    manifest[name] = `${bytes.length} ${createHash("sha256").update(bytes).digest("hex")}`;
  }
  return manifest;
}

function heddle(home: DamagedHome, ...args: string[]): ReturnType<typeof run> {
  return run(args, { world, env: { HEDDLE_HOME: home.path } });
}

async function expectVerdict(home: DamagedHome, named: RegExp, thread: string): Promise<void> {
  const { code, stdout } = await heddle(home, "verify");
  expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringMatching(named) });
  expect(stdout).toContain(thread);
  expect(stdout).toMatch(/event \d+/);
}

async function expectRefusal(home: DamagedHome): Promise<void> {
  const { code, stdout, stderr } = await heddle(home, ...execArgs("--script", script));
  expect({ code, stdout, stderr }).toMatchObject({ code: 8 });
  expect(refusals(stdout)).toEqual(["store.damaged"]);
  const told = stderr.split("\n").filter((line) => line !== "" && !line.includes("no model is used"));
  expect(told).toEqual([expect.stringMatching(/^heddle: /)]);
}

async function expectReadable(home: DamagedHome, thread: string): Promise<void> {
  const shown = await heddle(home, "threads", "show", thread);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining("working") });
}

/** A negative offset counts from the end. */
async function overwrite(file: string, at: number, bytes: Buffer): Promise<void> {
  await using handle = await open(file, "r+");
  const { size } = await handle.stat();
  await handle.write(bytes, 0, bytes.length, at < 0 ? size + at : at);
}

async function flip(file: string, share: number): Promise<void> {
  const { size } = await stat(file);
  await flipByte(file, Math.floor(size * share));
}

async function flipAt(file: string, text: string): Promise<void> {
  const at = (await readFile(file)).indexOf(text);
  if (at < 0) throw new Error(`${file} does not hold "${text}"`);
  await flipByte(file, at + 2);
}

async function flipByte(file: string, at: number): Promise<void> {
  expect(existsSync(file)).toBe(true);
  await using handle = await open(file, "r+");
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, at);
  await handle.write(Buffer.from([(byte[0] ?? 0) ^ 0x01]), 0, 1, at);
}
