import { execFile, spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attackKey, type AttackReport, type AttackWay } from "../../test/attack-world.ts";
import { ATTACKS, type Attack } from "../../test/attacks.ts";
import { PLANT_KEY } from "../../test/kernel-attacks.ts";
import { findHostTool } from "./host-tools.ts";

const PROGRAM = fileURLToPath(new URL("../../test/attack-world.ts", import.meta.url));
/** Nobody's number: it owns no file and no process. */
const OTHER_UID = 61_234;

const isRoot = process.getuid?.() === 0;
const hasBwrap = findHostTool("bwrap") !== undefined;
/** A checkout below a private folder cannot be read by anybody else. */
const canSwitchUser =
  isRoot && spawnSync(process.execPath, ["--check", PROGRAM], { uid: OTHER_UID, gid: OTHER_UID }).status === 0;

const perl = findHostTool("perl");
/** Version 2 or later; without perl nobody can ask. */
const hasLandlock =
  perl !== undefined && spawnSync(perl, ["-e", "exit(syscall(444, 0, 0, 1) >= 2 ? 0 : 1)"]).status === 0;
/** All below the private /tmp may be written as far as Landlock goes, what is shown there of the host's included. */
const isBelowTmp = /^\/(?:var\/)?tmp\//.test(import.meta.dirname);
const canBeHeld = (attack: Attack, isRootInBwrap: boolean): boolean =>
  (attack.needs !== "landlock" || (hasLandlock && !isBelowTmp)) &&
  !(isRootInBwrap && attack.isOpenToRootInBwrap === true);

let folder: string;

beforeAll(async () => {
  // Beside the installed packages, where a temporary folder's own cover does not already hide everything.
  const besideModules = join(dirname(PROGRAM), "../../../node_modules/.heddle-attacks-");
  folder = await mkdtemp(besideModules).catch(() => mkdtemp(join(tmpdir(), "heddle-attacks-")));
  await chmod(folder, 0o777);
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function runTable(way: AttackWay, uid: number | undefined): Promise<AttackReport> {
  const node = [process.execPath, "--conditions=heddle-source", "--disable-warning=ExperimentalWarning", PROGRAM, way];
  const [file = "", ...args] = perl === undefined ? node : [perl, "-e", PLANT_KEY, ...node];
  const { stdout } = await promisify(execFile)(file, args, {
    env: { ...process.env, HOME: folder, HEDDLE_ATTACK_DIR: folder },
    maxBuffer: 64 * 1024 * 1024,
    ...(uid !== undefined && { uid, gid: uid }),
  });
  return JSON.parse(stdout) as AttackReport;
}

const FIRST_PROCESS = { namespaces: " heddle-init ", standby: " heddle-standby ", bwrap: "bwrap " };

for (const way of ["namespaces", "standby", "bwrap"] as const) {
  for (const user of ["the user running the tests", "an ordinary user"] as const) {
    const isOther = user === "an ordinary user";
    const isPossible = (way !== "bwrap" || hasBwrap) && (!isOther || canSwitchUser);
    const reason = isPossible
      ? ""
      : isOther && !canSwitchUser
        ? " (needs root and a readable checkout)"
        : " (bwrap is missing)";
    describe.runIf(isPossible)(`${way}, as ${user}${reason}`, () => {
      const isRootInBwrap = way === "bwrap" && isRoot && !isOther;
      let report: AttackReport;

      beforeAll(async () => {
        report = await runTable(way, isOther ? OTHER_UID : undefined);
      }, 120_000);

      test.for(ATTACKS.filter((attack) => canBeHeld(attack, isRootInBwrap)))("$mode holds against: $name", (attack) => {
        const result = report.results[attackKey(attack)];
        expect(result).toBeDefined();
        if (attack.held === undefined) expect(result, result?.output).not.toMatchObject({ exitCode: 0 });
        else expect(result?.output).toMatch(attack.held);
      });

      test("no file changes under read-only, by path, mode and content", () => {
        expect(report.changedByReadOnly).toEqual([]);
      });

      test("nothing outside the workspace and no protected path changes", () => {
        expect(report.changedOutside).toEqual([]);
      });

      test("no connection reaches a socket of the host", () => {
        expect(report.connections).toBe(0);
      });

      test("it ran as the user and in the way it says", () => {
        expect(report.firstProcess).toContain(FIRST_PROCESS[way]);
        expect(report.uid).toBe(isOther ? OTHER_UID : process.getuid?.());
      });
    });
  }
}

test("without a wall the same attacks succeed, so the table can tell the difference", async () => {
  const report = await runTable("none", undefined);
  const tried = ATTACKS.filter((attack) => attack.isHarmless === true);
  const stopped = tried.filter((attack) => report.results[attackKey(attack)]?.exitCode !== 0).map(({ name }) => name);
  // Some of the programs used may not be installed; most are.
  expect(tried.length - stopped.length).toBeGreaterThanOrEqual(10);
  expect(stopped.filter((name) => name.startsWith("S9"))).toEqual([]);
  expect(report.connections).toBeGreaterThanOrEqual(4);
  expect(report.changedByReadOnly.length).toBeGreaterThan(0);
  expect(report.changedOutside.length).toBeGreaterThan(0);
});
