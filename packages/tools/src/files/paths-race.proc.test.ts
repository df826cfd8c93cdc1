import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isHeddleError } from "@heddle/protocol";
import { expect, test } from "vitest";
import { listInside, readFileInside, writeFileInside } from "./paths.ts";

const SWAPPER = fileURLToPath(new URL("../../test/link-swapper.ts", import.meta.url));
const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
/** How often an attacker is resisted by something that was done, not refused. */
const ENOUGH = isFull ? 5000 : 200;
const TIMES = `${ENOUGH} times (5000 with HEDDLE_E2E_FULL=1)`;
/** How long one waits for that, and until an attacker succeeds where nothing resists; usually a second or less. */
const DEADLINE_MS = 60_000;

interface Arena extends AsyncDisposable {
  readonly root: string;
  readonly folder: string;
  /** Files and contents outside that should not be there. */
  damage(): string[];
}

/** A write root in which another process keeps swapping a folder and a file for links that lead out. */
async function openArena(): Promise<Arena> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "heddle-race-")));
  const root = join(base, "ws");
  const outside = join(base, "outside");
  const folder = join(root, "play");
  for (const path of [root, outside, folder]) await mkdir(path);
  await writeFile(join(outside, "file"), "outside\n");
  const swapper = spawn(process.execPath, [SWAPPER, folder, outside, join(outside, "file")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(swapper.stdout, "data");
  return {
    root,
    folder,
    damage: () => {
      const names = readdirSync(outside).filter((name) => name !== "file");
      return readFileSync(join(outside, "file"), "utf8") === "outside\n" ? names : [...names, "file"];
    },
    [Symbol.asyncDispose]: async () => {
      swapper.stdin.end();
      await once(swapper, "close");
      await rm(base, { recursive: true, force: true });
    },
  };
}

interface Score {
  tries: number;
  done: number;
  escapes: number;
}

const isDone = ({ done }: Score): boolean => done >= ENOUGH;
const isOut = ({ escapes }: Score): boolean => escapes > 0;

/** Repeats `attempt`, which says whether it got out, until enough is seen. */
async function race(attempt: (round: number) => Promise<boolean>, isEnough: (score: Score) => boolean): Promise<Score> {
  const score: Score = { tries: 0, done: 0, escapes: 0 };
  const end = performance.now() + DEADLINE_MS;
  while (performance.now() < end && !isEnough(score)) {
    score.tries += 1;
    try {
      if (await attempt(score.tries)) score.escapes += 1;
      score.done += 1;
    } catch (error) {
      // Refused, or gone while it was looked at: both are right answers to an attacker.
      if (!isHeddleError(error) && !(error instanceof Error && "errno" in error)) throw error;
    }
  }
  return score;
}

test(`S30, D6: writing ${TIMES} while a folder and a file are swapped for links never gets out`, async ({
  annotate,
}) => {
  await using arena = await openArena();
  const rules = { writeRoots: [arena.root], masked: [] };
  const score = await race(async (round) => {
    const name = round % 2 === 0 ? "dir/file" : round % 4 === 1 ? "file" : `dir/new${round % 8}`;
    const { realPath } = await writeFileInside(join(arena.folder, name), `${round}\n`, rules, { createParents: false });
    return !realPath.startsWith(`${arena.root}/`);
  }, isDone);
  await annotate(JSON.stringify(score));
  expect(arena.damage()).toEqual([]);
  expect(score.escapes).toBe(0);
  expect(score.done).toBe(ENOUGH);
});

test(`S30: reading and listing ${TIMES} what is masked while links are swapped never shows it`, async ({
  annotate,
}) => {
  await using arena = await openArena();
  const rules = { writeRoots: [], masked: [join(arena.root, "../outside")] };
  const score = await race(async (round) => {
    if (round % 3 === 0) {
      const { entries } = await listInside(join(arena.folder, "dir"), rules, { maxEntries: 10 });
      return entries.length === 0;
    }
    const name = round % 3 === 1 ? "dir/file" : "file";
    const { bytes } = await readFileInside(join(arena.folder, name), rules, {
      maxBytes: 100,
      signal: new AbortController().signal,
    });
    return bytes.includes("outside");
  }, isDone);
  await annotate(JSON.stringify(score));
  expect(score.escapes).toBe(0);
  expect(score.done).toBe(ENOUGH);
});

test("a check of the real path before an ordinary write does get out, so the attacker is a real one", async ({
  annotate,
}) => {
  await using arena = await openArena();
  const score = await race(async (round) => {
    const path = join(arena.folder, "dir/file");
    if (!(await realpath(path)).startsWith(`${arena.root}/`)) return false;
    await writeFile(path, `${round}\n`);
    return arena.damage().length > 0;
  }, isOut);
  await annotate(JSON.stringify(score));
  expect(arena.damage().length).toBeGreaterThan(0);
});

test("a check before an ordinary read does get out too", async ({ annotate }) => {
  await using arena = await openArena();
  const score = await race(async () => {
    const path = join(arena.folder, "dir/file");
    if (!(await realpath(path)).startsWith(`${arena.root}/`)) return false;
    return (await readFile(path, "utf8")).includes("outside");
  }, isOut);
  await annotate(JSON.stringify(score));
  expect(score.escapes).toBeGreaterThan(0);
  expect(await readdir(arena.root)).toEqual(["play"]);
});
