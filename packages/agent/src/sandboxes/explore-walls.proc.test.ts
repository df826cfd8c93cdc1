/**
 * S1, S4, S6, S9: under `explore`, through every way by which a thread runs something, nothing is changed, nothing is read of the home,
 * nothing leaves the machine, and every attempt is on record.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { COMMANDS, GIT_COMMANDS } from "../../test/explore-attacks.ts";
import type { ExploreReport } from "../../test/explore-in-child.ts";

/** Nobody's number: it owns no file and no process. */
const OTHER_UID = 61_236;
const PROGRAM = join(import.meta.dirname, "../../test/explore-in-child.ts");
const isRoot = process.getuid?.() === 0;
const canSwitchUser =
  isRoot && spawnSync(process.execPath, ["--check", PROGRAM], { uid: OTHER_UID, gid: OTHER_UID }).status === 0;
const hasBwrap = ["/usr/bin", "/bin", "/usr/local/bin"].some((folder) => existsSync(join(folder, "bwrap")));

/** Every one has to have begun, or the test shows nothing. */
const WAYS = [
  "child",
  "command",
  "git-alias",
  "git-clean",
  "git-diff",
  "git-fsmonitor",
  "git-hook",
  "git-pager",
  "git-smudge",
  "git-ssh",
  "git-textconv",
  "grandchild",
  "hook",
  "orphan",
  "server",
  "server-of-child",
];

async function explore(backend: string, uid: number | undefined): Promise<ExploreReport> {
  // Beside the installed packages: a folder below the temporary one is hidden by the sandbox's own, whatever the envelope says.
  const folder = await mkdtemp(join(import.meta.dirname, "../../../../node_modules/.heddle-explore-"));
  try {
    await chmod(folder, 0o777);
    const children = inject("children");
    const args = [join(children, "explore-in-child.mjs"), backend, folder, join(children, "mcp-stdio-in-child.mjs")];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, HOME: folder },
      maxBuffer: 64 * 1024 * 1024,
      ...(uid !== undefined && { uid, gid: uid }),
    });
    const report: ExploreReport = JSON.parse(stdout);
    return report;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

for (const backend of ["namespaces", "bwrap"] as const) {
  for (const user of ["the user running the tests", "an ordinary user"] as const) {
    const isOther = user === "an ordinary user";
    const isPossible = (backend !== "bwrap" || hasBwrap) && (!isOther || canSwitchUser);
    const reason = isPossible
      ? ""
      : backend === "bwrap" && !hasBwrap
        ? " (bwrap is missing)"
        : " (needs root and a readable checkout)";
    test.runIf(isPossible)(
      `S1, S4, S6, S9: ${backend}, as ${user}: commands, git, a hook, an MCP server and a child change, read and reach nothing they must not${reason}`,
      { timeout: 180_000 },
      async () => {
        const report = await explore(backend, isOther ? OTHER_UID : undefined);
        expect(report).toMatchObject({
          uid: isOther ? OTHER_UID : process.getuid?.(),
          level: backend,
          status: "completed",
          ran: WAYS,
          changed: [],
          outside: [],
          reached: [],
          read: [],
          withoutIntent: [],
        });
        // Every attempt: what was to be done before it began, and how it ended.
        const { ends } = report;
        const commands = COMMANDS.length + GIT_COMMANDS.length + 4;
        expect(ends.filter((end) => end.startsWith("exec_command"))).toHaveLength(commands);
        expect(ends).toContain("apply_patch denied");
        expect(ends.filter((end) => end.startsWith("mcp.fix.run"))).toHaveLength(2);
        expect(report.hooks).toBeGreaterThanOrEqual(commands);
        // Outside a sandbox the same attack does all of it.
        const { control } = report;
        expect(control.outside).toEqual(["by-control"]);
        expect(control.reached).toEqual(["abstract", "tcp", "udp", "unix"]);
        expect(control.changed.length).toBeGreaterThanOrEqual(5);
        expect(control.read.some((path) => path.endsWith("/home/token"))).toBe(true);
        expect(control.read.length).toBeGreaterThanOrEqual(3);
      },
    );
  }
}
