/** Read roots in both back-ends, through both ways in, as root and as an ordinary user: what is not listed is not there. */
import { execFile, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemFolders } from "../envelopes/system-folders.ts";
import { findHostTool } from "./host-tools.ts";
import type { SandboxPolicy } from "./sandbox.ts";

const PROGRAM = fileURLToPath(new URL("../../test/sandbox-keeper.ts", import.meta.url));
/** Nobody's number: it owns no file and no process. */
const OTHER_UID = 61_236;
const isRoot = process.getuid?.() === 0;
const hasBwrap = findHostTool("bwrap") !== undefined;
const canSwitchUser =
  isRoot && spawnSync(process.execPath, ["--check", PROGRAM], { uid: OTHER_UID, gid: OTHER_UID }).status === 0;

let base: string;
let server: Server;
let roots: readonly string[];
let masked: readonly string[];

const at = (...names: string[]): string => join(base, ...names);

beforeAll(async () => {
  // Beside the installed packages: a temporary folder is private inside anyway.
  const besideModules = join(dirname(PROGRAM), "../../../node_modules/.heddle-reading-");
  base = await realpath(await mkdtemp(besideModules).catch(() => mkdtemp(join(tmpdir(), "heddle-reading-"))));
  for (const name of ["work", "shown/deep", "hidden/deep", "masked"]) await mkdir(at(name), { recursive: true });
  for (const name of ["work", "shown/deep", "hidden/deep", "masked"]) await writeFile(at(name, "file"), `of ${name}\n`);
  await symlink("shown", at("known"));
  await symlink(at("hidden/deep/file"), at("shown/out"));
  await symlink(at("hidden/deep/file"), at("work/out"));
  for (const name of ["", "work"]) await chmod(at(name), 0o777);
  server = createServer((socket) => socket.destroy());
  await new Promise<void>((done) => server.listen(at("hidden/socket"), done));
  const system = systemFolders("/usr/bin:/bin", process.execPath);
  roots = [...new Set([...system.folders, ...(await Promise.all(system.folders.map((path) => realpath(path))))])];
  masked = [...system.closed, at("masked"), at("hidden/deep")];
});

afterAll(async () => {
  await new Promise<void>((done) => server.close(() => done()));
  await rm(base, { recursive: true, force: true });
});

interface Way {
  readonly backend: "namespaces" | "bwrap";
  readonly hasStandby: boolean;
  readonly uid: number | undefined;
}

/** The outputs of commands, each in a sandbox that can read the system, `shown` and what is added. */
async function run({ backend, hasStandby, uid }: Way, own: Partial<SandboxPolicy>, ...commands: readonly string[]) {
  const readRoots = [...roots, at("shown"), at("known"), at("gone"), ...(own.readRoots ?? [])];
  const policy = { masked, ...own, readRoots };
  const marked = commands.map((command) => `${command}\necho "--- $?"`);
  const args = [
    "--conditions=heddle-source",
    "--disable-warning=ExperimentalWarning",
    PROGRAM,
    backend,
    at("work"),
    "",
  ];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, ...marked], {
    env: {
      ...process.env,
      HOME: base,
      HEDDLE_TEST_POLICY: JSON.stringify(policy),
      HEDDLE_TEST_STANDBY: hasStandby ? "yes" : "no",
    },
    ...(uid !== undefined && { uid, gid: uid }),
  });
  return stdout.split(/--- (\d+)\n/).slice(0, -1);
}

for (const backend of ["namespaces", "bwrap"] as const) {
  for (const user of ["the user running the tests", "an ordinary user"] as const) {
    const isOther = user === "an ordinary user";
    const isPossible = (backend !== "bwrap" || hasBwrap) && (!isOther || canSwitchUser);
    const why = isPossible
      ? ""
      : isOther && !canSwitchUser
        ? " (needs root and a readable checkout)"
        : " (bwrap is missing)";
    describe.runIf(isPossible)(`${backend}, as ${user}${why}`, () => {
      const way: Way = { backend, hasStandby: false, uid: isOther ? OTHER_UID : undefined };

      test("programs run, the roots are there, and nothing else has a name", { timeout: 120_000 }, async () => {
        const names = readdirSync("/").map((name) => `/${name}`);
        const above = base
          .split("/")
          .slice(1)
          .map((_, index, all) => `/${all.slice(0, index + 1).join("/")}`);
        const known = [...roots, ...above, "/proc", "/dev", "/tmp", "/var", "/sys"];
        const hidden = [
          ...names.filter((name) => !known.some((one) => one === name || one.startsWith(`${name}/`))),
          ...["hidden", "hidden/deep", "hidden/deep/file", "hidden/socket", "masked", "gone"].map((name) => at(name)),
        ];
        const seen = hidden.map((path) => `[ -e "${path}" ] || [ -L "${path}" ] && echo "${path}"`).join("\n");
        const tools =
          "node -e 'console.log(1 + 1)' && git --version >/dev/null && perl -e 'print 3' && sed s/a/b/ </dev/null";
        const ways = [`cat ${at("shown/deep/file")} ${at("known/deep/file")}`, `${seen}\ntrue`, tools, "ls -A"];
        const closed = ["cat out", `cat ${at("shown/out")}`, `cat /proc/[0-9]*/root${at("hidden/deep/file")}`];
        const written = ["touch /x", `touch ${at("shown/x")}`, "touch /usr/x", "echo x > file", "cat file"];
        for (const hasStandby of backend === "namespaces" ? [false, true] : [false]) {
          const ran = await run({ ...way, hasStandby }, { readRoots: [at("work")] }, ...ways, ...closed, ...written);
          expect(ran.slice(0, 8)).toEqual([
            "of shown/deep\nof shown/deep\n",
            "0",
            "",
            "0",
            "2\n3",
            "0",
            "file\nout\n",
            "0",
          ]);
          const refused = ran.slice(8, -2).filter((_, index) => index % 2 === 1);
          expect(refused.every((code) => Number(code) > 0)).toBe(true);
          expect(ran.slice(8, -2).join("")).not.toContain("of hidden");
          expect(ran.slice(-2)).toEqual(["of work\n", "0"]);
        }
      });

      test(
        "a workspace that may not be read is an empty folder, and one that may be written is whole",
        { timeout: 120_000 },
        async () => {
          expect(await run(way, {}, "pwd; ls -A", "touch x")).toEqual([
            `${at("work")}\n`,
            "0",
            expect.any(String),
            "1",
          ]);
          const own = { writeRoots: [at("work")] };
          expect(await run(way, own, "cat file; echo new > new; cat new; rm new", "cat out; true")).toEqual([
            "of work\nnew\n",
            "0",
            expect.not.stringContaining("of hidden"),
            "0",
          ]);
          // A folder in it that is listed too stays writable.
          await mkdir(at("work/in"), { mode: 0o777 });
          await chmod(at("work/in"), 0o777);
          expect(await run(way, { ...own, readRoots: [at("work/in")] }, "echo x > in/x && rm in/x")).toEqual(["", "0"]);
          await rm(at("work/in"), { recursive: true });
        },
      );

      test("settings that are not for everybody are empty", { timeout: 120_000 }, async () => {
        expect(await run(way, {}, "cat /etc/shadow", "head -c 4 /etc/passwd")).toEqual(["", "0", "root", "0"]);
      });

      test("a root that was made a link shows nothing of where it leads", { timeout: 120_000 }, async () => {
        await symlink(at("hidden"), at("door"));
        const [text] = await run(
          way,
          { readRoots: [at("door")] },
          `cat ${at("door/deep/file")}; ls ${at("hidden")}; true`,
        );
        expect(text).not.toMatch(/of hidden|deep$/);
        await rm(at("door"));
      });
    });
  }
}
