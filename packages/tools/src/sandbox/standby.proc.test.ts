/** A command in a standby is like one that entered without, in all it sees and in how it ends. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { copyFile, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { CappedOutput } from "../commands/output.ts";
import { argumentsOf, readProcStat } from "../commands/proc-stat.ts";
import { startCommand, type OwnedProcess, type ProcessExit } from "../commands/process.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox } from "./open.ts";
import type { Sandbox, SandboxedCommand } from "./sandbox.ts";

const KEEPER = fileURLToPath(new URL("../../test/sandbox-keeper.ts", import.meta.url));
const ENV = { PATH: "/usr/bin:/bin", HOME: "/", "IT'S": "no name for a shell", LANG: "C" };
const { "IT'S": _, ...PLAIN_ENV } = ENV;
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

interface Opened extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** How each command began, in order. */
  readonly kinds: SandboxedCommand["kind"][];
}

async function open(): Promise<Opened> {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-standby-test-")));
  folders.push(workspace);
  const inner = await openSandbox({ workspace, writeRoots: [workspace], masked: [], network: "none" });
  const kinds: SandboxedCommand["kind"][] = [];
  const sandbox: Sandbox = {
    level: inner.level,
    policy: inner.policy,
    ready: inner.ready,
    standBy: () => inner.standBy(),
    accept: () => inner.accept(),
    sweep: () => inner.sweep(),
    close: () => inner.close(),
    async enter(argv, options) {
      const command = await inner.enter(argv, options);
      kinds.push(command.kind);
      return command;
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  await inner.ready;
  return { sandbox, kinds, [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose]() };
}

interface Start {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

async function start(sandbox: Sandbox, options: Start): Promise<{ owned: OwnedProcess; output: CappedOutput }> {
  const output = new CappedOutput();
  const { argv, cwd = sandbox.policy.workspace, env = PLAIN_ENV, signal = AbortSignal.timeout(60_000) } = options;
  const limit = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs };
  const owned = await startCommand({ sandbox, argv, cwd, env, stdin: "ignore", output, signal, ...limit });
  return { owned, output };
}

async function run(sandbox: Sandbox, options: Start): Promise<ProcessExit & { readonly text: string }> {
  const { owned, output } = await start(sandbox, options);
  const exit = await owned.exited;
  await output.close();
  return { ...exit, text: output.snapshot().text };
}

const bash = (text: string): readonly string[] => ["bash", "-c", text];

/** What differs by nature: numbers of processes, the names of pipes, and covers of sockets that come meanwhile. */
const LOOK = `
  pwd; id; umask; ulimit -a; env | grep -v '^_='; nice
  grep -E '^(Cap|NoNewPrivs|Seccomp|Sig(Ign|Blk|Cgt)|Groups)' /proc/self/status
  for fd in 0 1 2 3 4 5 6 7 8 9; do sed 's, .*heddle.*, pipe,' <<<"$fd $(readlink /proc/$$/fd/$fd)"; done
  cut -d ' ' -f 5,6 /proc/$$/stat; readlink /proc/self/ns/net /proc/self/ns/ipc; grep -vc " /null " /proc/self/mountinfo
  touch /proc/sys/kernel/x /x 2>&1; test -w /proc/sys/kernel/core_pattern && echo writable
`;

test("it sees what a command sees that entered by itself", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  const alone = await run(sandbox, { argv: bash(LOOK) });
  sandbox.standBy();
  const stoodBy = await run(sandbox, { argv: bash(LOOK) });
  expect(kinds).toEqual(["spawn", "inside"]);
  expect(stoodBy.text).toBe(alone.text);
  expect(stoodBy.text).toContain("NoNewPrivs:\t1");
  expect(stoodBy.text).not.toContain("writable");
});

test("it ends as a command ends that entered by itself", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  const commands: readonly Start[] = [
    { argv: bash("exit 3") },
    { argv: bash("kill -9 $$") },
    { argv: bash("kill $$") },
    { argv: ["no-such-program"] },
    { argv: ["/etc/passwd"] },
    { argv: ["true"], cwd: "/no/such/folder" },
    { argv: bash("sleep 60"), timeoutMs: 50 },
    // Long enough for the shell to have set its trap on a busy machine too.
    { argv: bash("trap '' TERM; sleep 60"), timeoutMs: 1500 },
  ];
  for (const command of commands) {
    const [alone, stoodBy] = [await run(sandbox, command), (sandbox.standBy(), await run(sandbox, command))];
    const { exitCode, signal, cause } = alone;
    expect({ command, ...stoodBy }).toMatchObject({ command, exitCode, signal, cause });
  }
  expect(kinds).toEqual(commands.flatMap(() => ["spawn", "inside"]));
});

test("words and values are only ever words and values", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  const hostile = [
    "",
    " ",
    "'",
    `"`,
    "\\",
    "$(id)",
    "`id`",
    "a\nb",
    "'; exit 7; '",
    "é\u{1f9f5}",
    "-n",
    "}",
    "# x",
    "\t",
  ];
  const value = hostile.join("|");
  sandbox.standBy();
  const shown = await run(sandbox, {
    argv: ["bash", "-c", `printf '%s\\0' "$@"; printf %s "$HOSTILE"`, "bash", ...hostile],
    env: { ...PLAIN_ENV, HOSTILE: value, IFS: "a", PS4: "$(id)", ENV: "/etc/passwd", LC_ALL: "C.UTF-8" },
  });
  expect(shown).toMatchObject({ exitCode: 0, text: [...hostile, value].join("\0") });
  expect(kinds).toEqual(["inside"]);
});

test("much output arrives whole and in order, and a command that is stopped keeps what it said", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  sandbox.standBy();
  const counted = await run(sandbox, {
    argv: bash("for i in {1..4000}; do echo out $i; echo err $i >&2; done | tail -n 3"),
  });
  expect(counted.text).toMatch(/err 1\n/);
  sandbox.standBy();
  const { owned, output } = await start(sandbox, { argv: bash("echo began; setsid sleep 61.25 & sleep 61.25") });
  await vi.waitFor(() => expect(output.snapshot().text).toBe("began\n"));
  await vi.waitFor(() => expect(processes("sleep 61.25")).toHaveLength(2), 10_000);
  await owned.kill();
  expect(await owned.exited).toMatchObject({ cause: "killed" });
  expect(processes("sleep 61.25")).toEqual([]);
  expect(kinds).toEqual(["inside", "inside"]);
});

test("one that signals its whole group reaches itself alone, and nothing inside can speak for another", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  sandbox.standBy();
  const { owned } = await start(sandbox, { argv: bash("sleep 1; exit 5") });
  sandbox.standBy();
  expect(await run(sandbox, { argv: bash("kill -9 0; kill -9 -1; sleep 60") })).toMatchObject({ cause: "exited" });
  sandbox.standBy();
  // What the shell that waits for the command holds open leads nowhere but to this command's own end.
  const held = await run(sandbox, { argv: bash("for fd in /proc/1/fd/*; do readlink $fd; done | grep -v /dev/null") });
  expect(
    held.text
      .trim()
      .split("\n")
      .map((line) => line.replace(/.*\/standbys\//, ""))
      .toSorted(),
  ).toEqual(expect.arrayContaining(["3.output (deleted)", "3.status (deleted)"]));
  expect(held.text).not.toMatch(/socket|order|life|\/standbys$|\b[12]\.\w+ /m);
  expect(await owned.exited).toMatchObject({ exitCode: 5 });
  expect(kinds).toEqual(["inside", "inside", "inside"]);
});

const python = findHostTool("python3");
const PASS_ON = `
import array, os, socket, sys, time
side = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
if sys.argv[1] == "take":
    side.bind("/tmp/take"); side.listen(); print("listening", flush=True)
    peer, _ = side.accept()
    _, extra, _, _ = peer.recvmsg(1, socket.CMSG_LEN(8))
    held = array.array("i"); held.frombytes(extra[0][2]); os.write(held[0], b"still here"); time.sleep(60)
else:
    side.connect("/tmp/take")
    both = array.array("i", [1])
    try: both.append(os.open("/proc/1/fd/9", os.O_WRONLY))
    except PermissionError: pass  # Landlock keeps it.
    side.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, both)])
    time.sleep(0.2); sys.exit(9)
`;

test.runIf(python !== undefined)(
  "it has ended although another command has got hold of all it could give away",
  async () => {
    await using opened = await open();
    const { sandbox, kinds } = opened;
    const { owned, output } = await start(sandbox, { argv: [python ?? "", "-c", PASS_ON, "take"] });
    await vi.waitFor(() => expect(output.snapshot().text).toBe("listening\n"), { timeout: 10_000 });
    sandbox.standBy();
    const given = await run(sandbox, { argv: [python ?? "", "-c", PASS_ON, "give"] });
    expect(given).toMatchObject({ exitCode: 9, cause: "exited", text: "still here" });
    expect(kinds).toEqual(["spawn", "inside"]);
    await owned.kill();
  },
);

test("a command that writes where its exit code is written harms nobody but itself", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  sandbox.standBy();
  const lied = await run(sandbox, { argv: bash("printf '0 and more than a code has' >/proc/1/fd/9; exit 5") });
  // Where the kernel has Landlock the pipe cannot even be opened.
  const isHeld = lied.text.includes("Permission denied");
  const ends = isHeld ? { exitCode: 5, signal: undefined } : { exitCode: undefined, signal: "SIGKILL" };
  expect(lied).toMatchObject({ ...ends, cause: "exited" });
  sandbox.standBy();
  const wrote = await run(sandbox, { argv: bash("yes >/proc/1/fd/9"), timeoutMs: 300 });
  expect(wrote).toMatchObject({ cause: isHeld ? "exited" : "timeout" });
  sandbox.standBy();
  expect(await run(sandbox, { argv: bash("exit 6") })).toMatchObject({ exitCode: 6 });
  expect(kinds).toEqual(["inside", "inside", "inside"]);
});

test("what cannot be said in an order enters by itself: a very long command, a variable no shell knows", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  sandbox.standBy();
  const long = `: ${"x".repeat(100_000)}; echo long`;
  expect(await run(sandbox, { argv: bash(long) })).toMatchObject({ exitCode: 0, text: "long\n" });
  expect(await run(sandbox, { argv: bash("echo odd"), env: ENV })).toMatchObject({ exitCode: 0, text: "odd\n" });
  expect(await run(sandbox, { argv: bash("echo plain") })).toMatchObject({ exitCode: 0, text: "plain\n" });
  expect(kinds).toEqual(["spawn", "spawn", "inside"]);
});

test("one stands by at a time, and commands beside each other each get their own end", async () => {
  await using opened = await open();
  const { sandbox, kinds } = opened;
  for (let round = 0; round < 5; round += 1) {
    for (let asked = 0; asked < 3; asked += 1) sandbox.standBy();
    const exits = await Promise.all(
      [1, 2, 3].map((code) => run(sandbox, { argv: bash(`echo ${code}; exit ${code}`) })),
    );
    expect(exits.map(({ exitCode, text }) => [exitCode, text])).toEqual([1, 2, 3].map((code) => [code, `${code}\n`]));
  }
  expect(kinds.filter((kind) => kind === "inside")).toHaveLength(5);
});

test("one that is killed while it waits is not missed", async () => {
  await using opened = await open();
  const { sandbox } = opened;
  sandbox.standBy();
  await vi.waitFor(() => expect(standbysIn(sandbox)).toHaveLength(1), { timeout: 10_000 });
  // With the process that carries it: as long as that one is there, the order has a reader.
  const gone = standbysIn(sandbox).flatMap((pid) => [pid, ...ancestors(pid).slice(0, 1)]);
  for (const pid of standbysIn(sandbox)) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(pids().filter((pid) => gone.includes(pid))).toEqual([]));
  expect(await run(sandbox, { argv: bash("echo now") })).toMatchObject({ exitCode: 0, text: "now\n" });
  sandbox.standBy();
  expect(await run(sandbox, { argv: bash("echo next") })).toMatchObject({ exitCode: 0, text: "next\n" });
});

test("one that comes while the sandbox is being closed keeps nothing open", { timeout: 240_000 }, async () => {
  for (let round = 0; round < 20; round += 1) {
    await using opened = await open();
    const { sandbox } = opened;
    await run(sandbox, { argv: ["true"] });
    sandbox.standBy();
    // In one go, so that it is said to be there and has not been heard yet when the end begins.
    const deadline = performance.now() + 10_000;
    while (standbysIn(sandbox).length === 0 && performance.now() < deadline);
    const saidAt = performance.now() + round / 4;
    while (performance.now() < saidAt);
    await sandbox.close();
  }
  await vi.waitFor(() => expect(openStreams()).toEqual([]));
});

test("a host without what it takes runs every command all the same", async () => {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-standby-test-")));
  folders.push(workspace);
  const broken = join(workspace, "setsid");
  await writeFile(broken, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const keeper = [process.execPath, "--conditions=heddle-source", KEEPER, "namespaces", workspace, "", "echo ran"];
  const script = `mount --bind "$0" /usr/bin/setsid && exec "$@"`;
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", script, broken, ...keeper];
  expect(execFileSync("unshare", args, { encoding: "utf8", timeout: 30_000 })).toBe("ran\n");
});

test("one that comes late serves a later command, and no command waits for it twice", async () => {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-standby-test-")));
  folders.push(workspace);
  const [slow, real, gate] = ["setsid", "real-setsid", "gate"].map((name) => join(workspace, name));
  await copyFile(findHostTool("setsid") ?? "", real ?? "");
  await writeFile(slow ?? "", `#!/bin/sh\nwhile ! [ -e '${gate}' ]; do sleep 0.01; done\nexec '${real}' "$@"\n`, {
    mode: 0o755,
  });
  const first = "tr '\\0' ' ' </proc/1/cmdline | grep -oE 'heddle-(init|standby)' | head -n 1";
  const commands = Array.from({ length: 200 }, () => first);
  const script = `mount --bind "$0" /usr/bin/setsid && exec "$@"`;
  const node = [process.execPath, "--conditions=heddle-source", KEEPER, "namespaces", workspace, "", ...commands];
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", script, slow ?? "", ...node];
  const keeper = spawn("unshare", args, { stdio: ["ignore", "pipe", "inherit"] });
  const seen: string[] = [];
  keeper.stdout.setEncoding("utf8").on("data", (text: string) => {
    seen.push(...text.trim().split("\n"));
    if (seen.length >= 3) writeFileSync(gate ?? "", "");
  });
  await once(keeper, "close");
  expect(seen.slice(0, 3)).toEqual(["heddle-init", "heddle-init", "heddle-init"]);
  expect(seen.slice(-1)).toEqual(["heddle-standby"]);
});

test("it dies with Heddle", async () => {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "heddle-standby-test-")));
  folders.push(workspace);
  const keeper = spawn(process.execPath, ["--conditions=heddle-source", KEEPER, "namespaces", workspace, "62.5"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(keeper.stdout, "data");
  await vi.waitFor(() => expect(standbysBelow(keeper.pid ?? 0)).not.toEqual([]), { timeout: 10_000 });
  const standing = standbysBelow(keeper.pid ?? 0);
  keeper.kill("SIGKILL");
  await once(keeper, "close");
  await vi.waitFor(() => expect(standing.filter((pid) => pids().includes(pid))).toEqual([]), { timeout: 2000 });
});

/** Of standbys, in this process. */
function openStreams(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    const target = lstatSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false }) && readlinkSync(`/proc/self/fd/${fd}`);
    return target?.includes("/standbys/") === true ? [target] : [];
  });
}

/** By their command line. */
function processes(command: string): number[] {
  return pids().filter((pid) => argumentsOf(pid).join(" ") === command);
}

function standbysIn(sandbox: Sandbox): number[] {
  return sandbox.level === "namespaces" ? standbysBelow(process.pid) : [];
}

function standbysBelow(root: number): number[] {
  const isStandby = (pid: number): boolean => argumentsOf(pid).slice(0, 3).join(" ") === "sh -s heddle-standby";
  return pids().filter((pid) => isStandby(pid) && ancestors(pid).includes(root));
}

function ancestors(pid: number): number[] {
  const parent = readProcStat(pid)?.parent ?? 0;
  return parent === 0 ? [] : [parent, ...ancestors(parent)];
}

function pids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}
