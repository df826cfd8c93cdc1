import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isHeddleError } from "@heddle/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { commandEnvironment } from "../commands/environment.ts";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox, openUnconfined } from "./open.ts";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

const KEEPER = fileURLToPath(new URL("../../test/sandbox-keeper.ts", import.meta.url));
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function tempFolder(name = "heddle-sandbox-test-"): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), name)));
  folders.push(folder);
  return folder;
}

function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, encoding: "utf8" });
}

function writing(workspace: string, more: Partial<SandboxPolicy> = {}): SandboxPolicy {
  return { workspace, writeRoots: [workspace], masked: [], network: "none", ...more };
}

async function run(
  sandbox: Sandbox,
  command: string,
  cwd = sandbox.policy.workspace,
): Promise<{ code: number | undefined; text: string }> {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox,
    argv: ["bash", "-c", command],
    cwd,
    env: commandEnvironment(process.env, {
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a@b",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a@b",
    }),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  const { exitCode } = await owned.exited;
  await output.close();
  return { code: exitCode, text: output.snapshot().text };
}

const backends = [
  { backend: "namespaces", isThere: true },
  { backend: "bwrap", isThere: findHostTool("bwrap") !== undefined },
] as const;

for (const { backend, isThere } of backends) {
  describe.runIf(isThere)(`${backend}${isThere ? "" : " (not installed)"}`, () => {
    test("git commits, branches, stashes and switches as usual, and status says the same inside and outside", async () => {
      const workspace = await tempFolder();
      git(workspace, "init", "-q", "-b", "main");
      await writeFile(join(workspace, "a"), "1\n");
      await mkdir(join(workspace, ".vscode"));
      await writeFile(join(workspace, ".vscode/settings.json"), "{}");
      await using sandbox = await openSandbox(writing(workspace), { backend });
      const steps = [
        "git add a && git commit -qm first",
        "git branch side && git checkout -q side",
        "echo 2 > a && git stash -q && git stash pop -q",
        "git commit -qam second && git checkout -q main && git merge -q side",
        "git tag v1 && git log --oneline",
      ];
      for (const step of steps) expect(await run(sandbox, step), step).toMatchObject({ code: 0 });
      await writeFile(join(workspace, "new"), "x");
      const inside = await run(sandbox, "git status --porcelain");
      expect(inside.text).toBe(git(workspace, "status", "--porcelain"));
      expect(inside.text).toBe("?? .vscode/\n?? new\n");
      expect(git(workspace, "log", "--format=%s")).toBe("second\nfirst\n");
      expect(await sandbox.sweep()).toEqual([]);
    });

    test("paths with spaces, quotes, newlines and other scripts are only ever paths", async () => {
      const workspace = join(await tempFolder(), "a b'c\"d\ne$(touch pwned)`ü 東");
      await mkdir(join(workspace, ".vscode"), { recursive: true });
      await mkdir(join(workspace, "secret; rm -rf x"));
      await writeFile(join(workspace, "secret; rm -rf x/key"), "k");
      await using sandbox = await openSandbox(writing(workspace, { masked: [join(workspace, "secret; rm -rf x")] }), {
        backend,
      });
      const result = await run(sandbox, "pwd; echo ok > out; ls -A secret*; touch .vscode/x; echo end");
      expect(result.text).toContain(`${workspace}\n`);
      expect(result.text).not.toContain("key");
      expect(result.text).toContain("Read-only");
      expect(await readFile(join(workspace, "out"), "utf8")).toBe("ok\n");
      expect(readdirSync(workspace).toSorted()).toEqual([".vscode", "out", "secret; rm -rf x"]);
    });

    test("temporary files are private to the sandbox and shared by its commands", async () => {
      const workspace = await tempFolder();
      await using sandbox = await openSandbox(writing(workspace), { backend });
      await run(sandbox, "echo shared > /tmp/heddle-private-file; echo $TMPDIR");
      expect(await run(sandbox, "cat /tmp/heddle-private-file")).toEqual({ code: 0, text: "shared\n" });
      expect(existsSync("/tmp/heddle-private-file")).toBe(false);
    });

    test("folders of programs may be spelled with dots and slashes, and with links before the dots", async () => {
      const base = await tempFolder();
      const workspace = join(base, "ws");
      for (const folder of ["ws", "a", "bin", "far/away", "far/programs"])
        await mkdir(join(base, folder), { recursive: true });
      await symlink("far/away", join(base, "link"));
      for (const folder of ["bin", "far/programs"]) await writeFile(join(base, folder, "there"), "");
      const visible = ["a/../bin", "bin/", "./a//.././bin/.", "link/../programs"].map(
        (spelled) => `${base}/${spelled}`,
      );
      await using sandbox = await openSandbox(writing(workspace, { visible }), { backend });
      const inside = await run(sandbox, `cd ${base} && find . -type f; ls`);
      expect(inside.text.trim().split("\n").toSorted()).toEqual([
        "./bin/there",
        "./far/programs/there",
        "bin",
        "far",
        "ws",
      ]);
    });

    test("12.5: a workspace or write root behind a link is refused, and what it leads to is named", async () => {
      const base = await tempFolder();
      await mkdir(join(base, "real/below"), { recursive: true });
      await symlink("real", join(base, "link"));
      const real = join(base, "real");
      for (const policy of [
        writing(join(base, "link")),
        writing(join(base, "link/below")),
        writing(real, { writeRoots: [real, join(base, "link")] }),
      ]) {
        await expect(openSandbox(policy, { backend })).rejects.toMatchObject({
          code: "workspace.moved",
          message: expect.stringContaining(`leads to ${real}`),
        });
      }
    });

    test("the caller's own user is visible inside, and may write what it owns", async () => {
      const workspace = await tempFolder();
      await using sandbox = await openSandbox(writing(workspace), { backend });
      expect((await run(sandbox, "id -u; touch mine; stat -c %u mine")).text).toBe(
        `${process.getuid?.()}\n${process.getuid?.()}\n`,
      );
    });

    test("commands see the variables they are given and no others", async () => {
      const workspace = await tempFolder();
      await using sandbox = await openSandbox(writing(workspace), { backend });
      const output = new CappedOutput();
      await using owned = await startCommand({
        sandbox,
        argv: ["env", "-0"],
        cwd: workspace,
        env: { PATH: "/usr/bin:/bin", ODD: "a\nb 'c'", LD_BIND_NOW: "1" },
        stdin: "ignore",
        output,
        signal: AbortSignal.timeout(60_000),
      });
      await owned.exited;
      const names = output
        .snapshot()
        .text.split("\0")
        .filter((line) => line !== "" && !/^(?:PWD|OLDPWD|SHLVL|_)=/.test(line));
      expect(names.toSorted()).toEqual(["LD_BIND_NOW=1", "ODD=a\nb 'c'", "PATH=/usr/bin:/bin", "TMPDIR=/tmp"]);
    });

    test("with the network allowed a server of the host is reachable", async () => {
      const workspace = await tempFolder();
      const server = spawn(process.execPath, [
        "-e",
        'require("net").createServer((s) => s.end("hello")).listen(0, "127.0.0.1", function () { console.log(this.address().port) })',
      ]);
      const [chunk] = (await once(server.stdout, "data")) as [Buffer];
      try {
        await using sandbox = await openSandbox(writing(workspace, { network: "all" }), { backend });
        expect(await run(sandbox, `exec 3<>/dev/tcp/127.0.0.1/${chunk.toString().trim()} && cat <&3`)).toEqual({
          code: 0,
          text: "hello",
        });
      } finally {
        server.kill("SIGKILL");
      }
    });

    test("a link put in the place of a protected path leads no later command out", async () => {
      const base = await tempFolder();
      const workspace = join(base, "ws");
      await mkdir(join(workspace, "sub/deep/.vscode"), { recursive: true });
      git(workspace, "init", "-q", "sub/deep");
      await mkdir(join(base, "outside"));
      await mkdir(join(base, "home"));
      await writeFile(join(base, "home/token"), "secret");
      await using sandbox = await openSandbox(writing(workspace, { masked: [join(base, "home")] }), { backend });
      await run(
        sandbox,
        "mv sub aside; mv sub/deep sub/aside; mkdir -p sub/deep; cd sub/deep && mv .git .vscode ..; ln -s ../../../outside .git; ln -s ../../../home .vscode",
      );
      const later = await run(
        sandbox,
        `touch ${base}/outside/escaped sub/deep/.git/escaped; cat ${base}/home/token sub/deep/.vscode/token`,
      );
      expect(later.text).not.toContain("secret");
      expect(await readdir(join(base, "outside"))).toEqual([]);
      expect(await run(sandbox, "echo still works")).toEqual({ code: 0, text: "still works\n" });
    });

    test("a protected file that its owner removes meanwhile stops nothing", async () => {
      const workspace = await tempFolder();
      await writeFile(join(workspace, ".npmrc"), "");
      await using sandbox = await openSandbox(writing(workspace), { backend });
      await rm(join(workspace, ".npmrc"));
      expect(await run(sandbox, "echo fine")).toEqual({ code: 0, text: "fine\n" });
    });

    test("killing Heddle with SIGKILL ends everything inside within 2 s, detached grandchildren too", async () => {
      const workspace = await tempFolder();
      const marker = `${process.pid}${Date.now()}`;
      const keeper = spawn(process.execPath, ["--conditions=heddle-source", KEEPER, backend, workspace, marker], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [ready] = (await once(keeper.stdout, "data")) as [Buffer];
      expect(ready.toString()).toContain("ready");
      expect(await until(() => withArgument(marker).length >= 2, 5000)).toBe(true);
      keeper.kill("SIGKILL");
      await once(keeper, "close");
      expect(await until(() => withArgument(marker).length === 0, 2000), String(withArgument(marker))).toBe(true);
    });

    test("closing ends what is still running, may be done twice, and leaves nothing behind", async () => {
      const workspace = await tempFolder();
      const tmpDir = await tempFolder();
      const sandbox = await openSandbox(writing(workspace), { backend, tmpDir });
      const marker = `${process.pid}7${Date.now()}`;
      const output = new CappedOutput();
      const owned = await startCommand({
        sandbox,
        argv: ["bash", "-c", `setsid sleep ${marker} & sleep ${marker}`],
        cwd: workspace,
        env: commandEnvironment(process.env),
        stdin: "ignore",
        output,
        signal: AbortSignal.timeout(60_000),
      });
      expect(await until(() => withArgument(marker).length >= 2, 5000)).toBe(true);
      await Promise.all([sandbox.close(), sandbox.close()]);
      await sandbox[Symbol.asyncDispose]();
      expect(withArgument(marker)).toEqual([]);
      expect(await owned.exited).toMatchObject({ signal: "SIGKILL" });
      await owned[Symbol.asyncDispose]();
      expect(await readdir(tmpDir)).toEqual([]);
      await expect(sandbox.enter(["true"], { cwd: workspace, env: {} })).rejects.toMatchObject({
        code: "sandbox.failed",
      });
    });
  });
}

test("commands of one sandbox reach each other's servers on the loopback of their own network", async () => {
  const workspace = await tempFolder();
  await using sandbox = await openSandbox(writing(workspace), { backend: "namespaces" });
  const output = new CappedOutput();
  await using server = await startCommand({
    sandbox,
    argv: [
      "node",
      "-e",
      'require("net").createServer((s) => s.end("inside")).listen(34567, "127.0.0.1", () => console.log("up"))',
    ],
    cwd: workspace,
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  expect(await until(() => output.snapshot().text.includes("up"), 10_000)).toBe(true);
  expect(await run(sandbox, "exec 3<>/dev/tcp/127.0.0.1/34567 && cat <&3")).toEqual({ code: 0, text: "inside" });
  await server.kill();
});

test("the root folder and folders of the kernel are refused as write roots", async () => {
  for (const root of ["/", "/proc", "/sys", "/dev"]) {
    await expect(
      openSandbox({ workspace: "/", writeRoots: [root], masked: [], network: "none" }),
    ).rejects.toMatchObject({ code: "usage.invalid" });
  }
});

test("a workspace that does not exist is said to be missing", async () => {
  await expect(openSandbox(writing("/no/such/folder"))).rejects.toMatchObject({ code: "workspace.missing" });
});

test("a masked folder that appears later inside a write root is moved away", async () => {
  const workspace = await tempFolder();
  const quarantineDir = await tempFolder();
  await using sandbox = await openSandbox(writing(workspace, { masked: [join(workspace, "later")] }), {
    quarantineDir,
  });
  await run(sandbox, "mkdir later && echo x > later/y");
  const [violation] = await sandbox.sweep();
  expect(violation?.path).toBe(join(workspace, "later"));
  expect(readFileSync(join(violation?.quarantinedTo ?? "", "y"), "utf8")).toBe("x\n");
});

test("a workspace that lies in another writable folder is as writable, also below a folder that is private inside", async () => {
  const outer = await tempFolder();
  const workspace = join(outer, "inner");
  await mkdir(workspace);
  for (const writeRoots of [[outer], [outer, workspace], [workspace, outer]]) {
    await using sandbox = await openSandbox({ ...writing(workspace), writeRoots });
    expect(await run(sandbox, "echo a > made && echo b > ../made && cat made ../made")).toEqual({
      code: 0,
      text: "a\nb\n",
    });
  }
});

test("what a killed Heddle left behind is removed by the next one, and what a living one uses is not", async () => {
  const workspace = await tempFolder();
  const tmpDir = await tempFolder();
  const abandoned = join(tmpDir, "heddle-sandbox-abandoned");
  const halfMade = join(tmpDir, "heddle-sandbox-half-made");
  const fresh = join(tmpDir, "heddle-sandbox-fresh");
  for (const folder of [abandoned, halfMade, fresh]) await mkdir(folder);
  await writeFile(join(abandoned, "owner"), "1 0 another-boot pid:[1]");
  await utimes(halfMade, new Date(0), new Date(0));
  await using first = await openSandbox(writing(workspace), { tmpDir });
  await using second = await openSandbox(writing(workspace), { tmpDir });
  // The latest when one closes; one that stays open looks after a while.
  await (await openSandbox(writing(workspace), { tmpDir })).close();
  expect((await readdir(tmpDir)).length).toBe(3);
  expect([existsSync(abandoned), existsSync(halfMade), existsSync(fresh)]).toEqual([false, false, true]);
  expect(await run(first, "echo 1 > /tmp/x")).toMatchObject({ code: 0 });
  expect(await run(second, "echo 2 > /tmp/x")).toMatchObject({ code: 0 });
});

test("no sandbox at all is its own level and confines nothing", async () => {
  const workspace = await tempFolder();
  await using sandbox = openUnconfined(writing(workspace));
  expect(sandbox.level).toBe("none");
  expect(await run(sandbox, "pwd")).toEqual({ code: 0, text: `${workspace}\n` });
  expect(isHeddleError(await sandbox.enter([], { cwd: workspace, env: {} }).catch((error: unknown) => error))).toBe(
    true,
  );
});

function withArgument(argument: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      const parts = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return parts[0]?.endsWith("sleep") === true && parts.includes(argument);
    } catch {
      return false;
    }
  });
}

async function until(isTrue: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!isTrue()) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}
