/** S3: the network of a sandbox whose envelope lists hosts, in both back-ends, as root and as an ordinary user. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HELD, WORKING, type NetworkCommand } from "../../test/network-commands.ts";
import type { NetworkReport } from "../../test/network-world.ts";
import { findHostTool } from "../sandbox/host-tools.ts";

const PROGRAM = fileURLToPath(new URL("../../test/network-world.ts", import.meta.url));
/** Nobody's number: it owns no file and no process. */
const OTHER_UID = 61_235;
const ARGS = ["--conditions=heddle-source", "--disable-warning=ExperimentalWarning", PROGRAM];

const hasBwrap = findHostTool("bwrap") !== undefined;
const canStepDown =
  process.getuid?.() === 0 &&
  spawnSync(process.execPath, ["--check", PROGRAM], { uid: OTHER_UID, gid: OTHER_UID }).status === 0;
const isPossible = ({ needs }: NetworkCommand): boolean => needs === undefined || findHostTool(needs) !== undefined;

let parent: string;

beforeAll(async () => {
  // Beside the installed packages: in the temporary folder the host's sockets are hidden by its own cover.
  const besideModules = join(dirname(PROGRAM), "../../../node_modules/.heddle-network-");
  parent = await mkdtemp(besideModules).catch(() => mkdtemp(join(tmpdir(), "heddle-network-")));
  await chmod(parent, 0o777);
});

afterAll(async () => {
  await rm(parent, { recursive: true, force: true });
});

async function openFolder(): Promise<string> {
  const folder = await mkdtemp(join(parent, "w-"));
  await chmod(folder, 0o777);
  return folder;
}

for (const backend of ["namespaces", "bwrap"] as const) {
  for (const user of ["the user running the tests", "an ordinary user"] as const) {
    const isOther = user === "an ordinary user";
    const reason = backend === "bwrap" && !hasBwrap ? " (bwrap is missing)" : isOther ? " (needs root)" : "";
    describe.runIf((backend !== "bwrap" || hasBwrap) && (!isOther || canStepDown))(
      `S3: ${backend}, as ${user}${reason}`,
      () => {
        let report: NetworkReport;

        beforeAll(async () => {
          const folder = await openFolder();
          const { stdout } = await promisify(execFile)(process.execPath, [...ARGS, backend, folder], {
            env: { ...process.env, HOME: folder },
            maxBuffer: 64 * 1024 * 1024,
            ...(isOther && { uid: OTHER_UID, gid: OTHER_UID }),
          });
          // Of the test's own program.
          report = JSON.parse(stdout) as NetworkReport;
        }, 120_000);

        test.for(WORKING.filter(isPossible))("works: $name", ({ name, gives = /^/ }) => {
          const result = report.results[name];
          expect(result?.text).toMatch(gives);
          expect(result?.code).toBe(0);
        });

        test.for(HELD.filter(isPossible))("holds against: $name", ({ name, held }) => {
          const result = report.results[name];
          if (held !== undefined) expect(result?.text).toMatch(held);
          else expect(result, result?.text).not.toMatchObject({ code: 0 });
        });

        test("nothing but the listed server was reached", () => {
          expect(report.uid).toBe(isOther ? OTHER_UID : process.getuid?.());
          expect({ other: report.other, reached: report.reached }).toEqual({ other: [], reached: [] });
          const { web } = report.ports;
          const hosts = new Set(report.listed.map((line) => line.split(" ")[2]));
          const listed = [`127.0.0.1:${web}`, `good.example:${web}`, `a.wild.example:${web}`];
          expect(listed).toEqual(expect.arrayContaining([...hosts]));
        });

        test("each host is counted once, with what was refused and why", () => {
          const { used, refused } = report.use;
          const { web, other } = report.ports;
          const names = used.map(({ host, port }) => `${host}:${port}`);
          expect(new Set(names).size).toBe(names.length);
          expect(used.every(({ requests, bytesSent, bytesReceived }) => requests * bytesSent * bytesReceived > 0)).toBe(
            true,
          );
          const rows = refused.map(({ host, port, reason: why }) => `${host}:${port} ${why}`);
          expect(rows).toEqual(
            expect.arrayContaining([
              `evil.example:${other} not-listed`,
              `loop.example:${other} address-not-listed`,
              "meta.example:80 address-not-listed",
              "ten.example:80 address-not-listed",
              `good.example:${web} host-mismatch`,
              "8.8.8.8:80 not-listed",
              "[::1]:80 not-listed",
            ]),
          );
        });
      },
    );

    test.runIf((backend !== "bwrap" || hasBwrap) && (!isOther || canStepDown))(
      `kill -9 of Heddle leaves nothing behind that forwards: ${backend}, as ${user}${reason}`,
      async () => {
        const folder = await openFolder();
        const keeper = spawn(process.execPath, [...ARGS, backend, folder, "keep"], {
          stdio: ["ignore", "pipe", "inherit"],
          env: { ...process.env, HOME: folder },
          ...(isOther && { uid: OTHER_UID, gid: OTHER_UID }),
        });
        const [line] = (await once(keeper.stdout, "data")) as [Buffer];
        const pids = JSON.parse(line.toString()) as number[];
        expect(pids.length).toBeGreaterThan(2);
        keeper.kill("SIGKILL");
        await once(keeper, "exit");
        const living = (): number[] => pids.filter((pid) => existsSync(`/proc/${pid}/root`) && isAlive(pid));
        // The kernel ends the namespaces a moment later.
        const until = Date.now() + 10_000;
        while (living().length > 0 && Date.now() < until) await setTimeout(20);
        expect(living()).toEqual([]);
      },
    );
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
