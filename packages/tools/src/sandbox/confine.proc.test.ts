/** What holds a command beside mounts and namespaces: on hosts with less to load it with, and that builds do not feel it. */
import { spawnSync } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findConfiner, landlockQuestion } from "./confine.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox } from "./open.ts";
import type { Sandbox } from "./sandbox.ts";

const KEEPER = fileURLToPath(new URL("../../test/sandbox-keeper.ts", import.meta.url));
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function tempFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "heddle-confine-")));
  folders.push(folder);
  return folder;
}

/** Covers programs of the host in a mount namespace of its own, as if they were not installed. */
const HIDE = `
  for folder in /usr/bin /bin /usr/sbin /sbin /usr/local/bin /usr/local/sbin; do
    for name in $HIDDEN; do [ -x "$folder/$name" ] && mount --bind /dev/null "$folder/$name"; done
  done
  exec "$@"`;

const CONFINEMENT = "grep -E '^(Seccomp|NoNewPrivs|CapBnd|CapEff|CapAmb|SigIgn):' /proc/self/status; env | grep ^LC_";
/** Where, with which options and from which file system. */
const MOUNTS =
  "sed -E 's/heddle-sandbox-[^/ ]+/S/g; s/ - / /' /proc/self/mountinfo | cut -d ' ' -f 5- | grep -v /perl | sort";

function onHostWithout(
  hidden: string,
  backend: string,
  folder: string,
  look = CONFINEMENT,
): { stdout: string; stderr: string } {
  const keeper = [process.execPath, "--conditions=heddle-source", KEEPER, backend, folder, "", look];
  return spawnSync("unshare", ["--user", "--map-root-user", "--mount", "sh", "-c", HIDE, "sh", ...keeper], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: folder, TMPDIR: tmpdir(), HIDDEN: hidden },
  });
}

function status(seccomp: number): string {
  const none = "0000000000000000";
  return `SigIgn:\t${none}\nCapEff:\t${none}\nCapBnd:\t${none}\nCapAmb:\t${none}\nNoNewPrivs:\t1\nSeccomp:\t${seccomp}\n`;
}

const { kind } = findConfiner();
const hasBwrap = findHostTool("bwrap") !== undefined;
const hasPython = findHostTool("python3") !== undefined;

test.runIf(kind === "perl")("12.7: with perl, commands have no capability and a filter", async () => {
  expect(onHostWithout("", "namespaces", await tempFolder())).toMatchObject({ stderr: "", stdout: status(2) });
});

test.runIf(kind === "perl")("12.7: with perl and without the mounts are the same", async () => {
  const folder = await tempFolder();
  const [withPerl, without] = ["", "perl"].map((hidden) => onHostWithout(hidden, "namespaces", folder, MOUNTS));
  expect(withPerl).toMatchObject({ stderr: "", stdout: expect.stringContaining("/dev/shm rw,nosuid,nodev") });
  expect(without?.stdout).toBe(withPerl?.stdout);
});

test.runIf(hasPython)("12.7: with python3 alone the same holds", async () => {
  expect(onHostWithout("perl", "namespaces", await tempFolder())).toMatchObject({ stderr: "", stdout: status(2) });
});

test("12.7: a host with neither runs commands without a filter, or setpriv loads it", async () => {
  const help = spawnSync(findHostTool("setpriv") ?? "setpriv", ["--help"], { encoding: "utf8" }).stdout;
  const filters = help.includes("--seccomp-filter") ? 2 : 0;
  const { stdout } = onHostWithout("perl python3", "namespaces", await tempFolder());
  expect(stdout).toBe(status(filters));
});

test.runIf(hasBwrap)(`12.7: bwrap loads the filter by itself there${hasBwrap ? "" : " (not installed)"}`, async () => {
  const { stdout } = onHostWithout("perl python3", "bwrap", await tempFolder());
  expect(stdout).toBe(status(2));
});

/** What a sandbox comes to on a host whose perl is a shell script. */
function onHostWithPerl(perl: string, folder: string): { stdout: string; stderr: string } {
  const script = `cp /usr/bin/perl "$HOME/real" && printf '%s\\n' '#!/bin/sh' "$PERL" > "$HOME/perl" && chmod 755 "$HOME/perl" && mount --bind "$HOME/perl" /usr/bin/perl && exec "$@"`;
  const keeper = [process.execPath, "--conditions=heddle-source", KEEPER, "namespaces", folder, "", "echo ran"];
  return spawnSync("unshare", ["-Urm", "sh", "-c", script, "sh", ...keeper], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: folder, TMPDIR: tmpdir(), PERL: perl },
  });
}

test.runIf(kind === "perl")("12.7: where the filter cannot be loaded although it should be, nothing runs", async () => {
  const folder = await tempFolder();
  // The mounts are made, and then no filter can be loaded.
  const perl = `case "$3" in "# heddle-holder"*) exec ${folder}/real "$@" ;; esac; exit 1`;
  const { stdout, stderr } = onHostWithPerl(perl, folder);
  expect(stdout).toBe("sandbox.failed");
  expect(stderr).toContain("commands cannot be confined on this host");
});

test.runIf(kind === "perl")("12.7: with a perl that cannot make system calls, nothing runs", async () => {
  const { stdout, stderr } = onHostWithPerl("exit 1", await tempFolder());
  expect(stdout).toBe("sandbox.unavailable");
  expect(stderr).toContain("namespaces: the holder ended");
});

async function run(sandbox: Sandbox, command: string): Promise<{ code: number | undefined; text: string }> {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: ["bash", "-c", command],
    cwd: sandbox.policy.workspace,
    env: commandEnvironment(process.env, { PERL5OPT: "-Mno_such_module", PYTHONHOME: "/nowhere" }),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  const { exitCode } = await owned.exited;
  await output.close();
  return { code: exitCode, text: output.snapshot().text };
}

/** What builds do, and a rule too many would stop. Each ends with 0. */
const EVERYDAY: readonly [string, string][] = [
  ["outputs are opened again", "echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/fd/2 >/dev/null"],
  ["output goes through pipes of the shell", "cat <(echo a) && echo b > >(cat) && (echo c | cat >/dev/null)"],
  [
    "files move and are linked between folders",
    "mkdir x y && echo 1 >x/f && mv x/f y/g && ln y/g x/h && mv x y/ && rm -r y",
  ],
  [
    "named pipes work where files do",
    "mkfifo p /tmp/p && (cat p & echo 1 >p; wait) && (cat /tmp/p & echo 2 >/tmp/p; wait)",
  ],
  [
    "temporary files and shared memory are written",
    "echo 1 >/tmp/t && echo 1 >/var/tmp/t && echo 1 >/dev/shm/t && : >/dev/null",
  ],
  [
    "a process describes itself",
    "test ! -w /proc/self/comm || echo name >/proc/self/comm; test ! -w /proc/self/oom_score_adj || echo 500 >/proc/self/oom_score_adj",
  ],
  [
    "Node forks, threads, listens and asks for interfaces",
    `"$NODE" -e '
      const { fork } = require("child_process"), { Worker } = require("worker_threads"), net = require("net");
      require("os").networkInterfaces();
      if (process.send) { process.send("hi"); process.exit(0) }
      new Worker("require(\\"fs\\").writeFileSync(\\"w\\", \\"1\\")", { eval: true }).on("exit", () => {
        const server = net.createServer((s) => s.end()).listen("/tmp/s", () => net.connect("/tmp/s").resume().on("close", () => server.close()));
      });'`,
  ],
  [
    "git keeps a repository",
    "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git gc -q",
  ],
];

const ways = [
  { way: "namespaces", isThere: true },
  { way: "standby", isThere: true },
  { way: "bwrap", isThere: hasBwrap },
] as const;

for (const { way, isThere } of ways) {
  test.runIf(isThere)(`everyday work is not in the way of what confines it: ${way}`, async () => {
    const workspace = await tempFolder();
    const policy = { workspace, writeRoots: [workspace], masked: [], network: "none" } as const;
    await using sandbox = await openSandbox(policy, { backend: way === "bwrap" ? "bwrap" : "namespaces" });
    for (const [name, command] of EVERYDAY) {
      if (way === "standby") sandbox.standBy();
      const result = await run(sandbox, `NODE=${process.execPath}; set -e; ${command}`);
      expect({ name, ...result }).toEqual({ name, code: 0, text: expect.anything() });
    }
  });
}

/** Abstract sockets belong to the network, and with the host's network the host's are there. */
const question = landlockQuestion(findConfiner());
const landlock = question === undefined ? 0 : Number(spawnSync(question[0] ?? "", question.slice(1)).stdout.toString());
test.runIf(landlock >= 6)(
  "12.7: with the host's network its abstract sockets stay out of reach, the command's own are not",
  async () => {
    const workspace = await tempFolder();
    const name = `heddle-confine-${process.pid}`;
    const server = createServer((socket) => socket.end()).listen(`\0${name}`);
    try {
      await using sandbox = await openSandbox({ workspace, writeRoots: [], masked: [], network: "all" });
      const connect = (to: string): string =>
        `require("net").connect("\\0${to}").on("connect", () => process.exit(0)).on("error", () => process.exit(1))`;
      expect(await run(sandbox, `${process.execPath} -e '${connect(name)}'`)).toMatchObject({ code: 1 });
      const own = `require("net").createServer().listen("\\0${name}-own", () => ${connect(`${name}-own`)})`;
      expect(await run(sandbox, `${process.execPath} -e '${own}'`)).toMatchObject({ code: 0 });
    } finally {
      server.close();
    }
  },
);
