import { createServer } from "node:http";
import { createHash, randomInt } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, symlink } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import { runChecks } from "../attempt/baseline.ts";

type Checks = NonNullable<TaskFixtureOptions["checks"]>;

async function run(options: TaskFixtureOptions) {
  await using fixture = await openTaskFixture(options);
  return await fixture.runChecks();
}

test("50: a command is judged by its exit code and its output", async () => {
  const checks: Checks = [
    { kind: "command", run: ["true"] },
    { kind: "command", run: ["false"] },
    { kind: "command", run: "exit 3", exit: 3 },
    { kind: "command", run: ["cat", "a.txt"], cwd: "src", contains: "inside" },
    { kind: "command", run: "echo out; echo err >&2", matches: "^err$", contains: "out" },
    { kind: "command", run: "echo out", contains: "other" },
    { kind: "command", run: ["no-such-program"] },
    { kind: "command", run: "kill -KILL $$" },
    { kind: "command", run: "true", cwd: "../.." },
    { kind: "command", run: ["cat"], exit: 0 },
  ];
  const results = await run({ files: { "src/a.txt": "inside" }, checks });
  expect(results.map(({ outcome }) => outcome)).toEqual([
    "passed",
    "failed",
    "passed",
    "passed",
    "passed",
    "failed",
    "failed",
    "error",
    "error",
    "passed",
  ]);
  expect(results[4]).toMatchObject({
    output: "out\nerr\n",
    sha256: createHash("sha256").update("out\nerr\n").digest("hex"),
  });
});

test("58: a result keeps beginning and end of a flood, and the hash of all of it", async () => {
  const [result] = await run({ checks: [{ kind: "command", run: "seq 1 200000" }] });
  const all = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join("");
  expect(result).toMatchObject({ outcome: "passed", sha256: createHash("sha256").update(all).digest("hex") });
  expect(result?.output?.startsWith("1\n2\n")).toBe(true);
  expect(result?.output?.endsWith("199999\n200000\n")).toBe(true);
  expect(result?.output?.length).toBeLessThan(9_000);
  expect(result?.startedAt).toBeGreaterThan(Date.now() - 60_000);
});

test("text that a flood may have held in its middle is an error, not a failure", async () => {
  const [lost, found] = await run({
    checks: [
      { kind: "command", run: "seq 1 900000", contains: "nowhere in it" },
      { kind: "command", run: "seq 1 900000", matches: "^900000$" },
    ],
  });
  expect([lost?.outcome, found?.outcome]).toEqual(["error", "passed"]);
});

test("F40: a command that hangs is an error at its limit, and nothing of it is left", async () => {
  const seconds = ownSeconds();
  await using fixture = await openTaskFixture({
    checks: [{ kind: "command", run: `setsid sleep ${seconds} & sleep ${seconds}`, timeoutMs: 300 }],
  });
  const began = performance.now();
  const [result] = await fixture.runChecks();
  expect(result).toMatchObject({ outcome: "error", message: expect.stringContaining("after 300 ms") });
  expect(performance.now() - began).toBeLessThan(10_000);
  expect(running(seconds)).toEqual([]);
});

test("a command that leaves something behind is judged, and what it left is ended", async () => {
  const seconds = ownSeconds();
  const left = `setsid sleep ${seconds} >/dev/null 2>&1 & echo ok`;
  const [result] = await run({ checks: [{ kind: "command", run: left }] });
  expect(result).toMatchObject({ outcome: "passed" });
  expect(running(seconds)).toEqual([]);
});

test("50: commands see neither keys nor Heddle's home nor the network, and write only the workspace", async () => {
  await using fixture = await openTaskFixture({
    env: { PATH: process.env["PATH"], OPENAI_API_KEY: "sk-secret", HEDDLE_HOME: "/h" },
    checks: [
      { kind: "command", run: "env" },
      { kind: "command", run: "cat $(dirname $PWD)/home/secret.txt" },
      { kind: "command", run: "echo x > $(dirname $PWD)/outside.txt; echo x > /etc/heddle-outside" },
      { kind: "command", run: "echo x > inside.txt" },
      { kind: "command", run: "cat /proc/net/dev | grep -c eth0", exit: 1 },
    ],
  });
  const results = await fixture.runChecks();
  expect(results.map(({ outcome }) => outcome)).toEqual(["passed", "failed", "failed", "passed", "passed"]);
  expect(results[0]?.output).not.toMatch(/sk-secret|HEDDLE/);
  expect(results[0]?.output).toContain("CI=true");
  expect([join(fixture.root, "outside.txt"), "/etc/heddle-outside"].filter(existsSync)).toEqual([]);
  expect(existsSync(join(fixture.workspace, "inside.txt")), "13: nothing of a check reaches the workspace").toBe(false);
});

test("a program of the workspace does not stand for one of the host, and a link leads no command out", async () => {
  await using fixture = await openTaskFixture({
    git: true,
    files: { "bin/git": "#!/bin/sh\necho main\n", "bin/hello": "#!/bin/sh\necho hello\n" },
    checks: [
      { kind: "git", branch: "topic" },
      { kind: "command", run: ["hello"] },
      { kind: "command", run: ["pwd"], cwd: "away" },
      { kind: "command", run: ["pwd"], cwd: "bin/git" },
    ],
  });
  await chmod(join(fixture.workspace, "bin/git"), 0o755);
  await chmod(join(fixture.workspace, "bin/hello"), 0o755);
  await symlink("/etc", join(fixture.workspace, "away"));
  const env = { PATH: `${fixture.workspace}/bin:./bin:${process.env["PATH"]}` };
  const results = await runChecks({ ...fixture.checkOptions, env });
  expect(results.map(({ outcome }) => outcome)).toEqual(["failed", "failed", "error", "error"]);
  expect(results[0]?.message).toBe("on branch main, not topic");
});

test("a check that says so reaches the network", async () => {
  await using server = await serve((_, respond) => respond(200, "reached"));
  const code = `fetch("${server.url}").then(r=>r.text()).then(console.log,()=>process.exit(9))`;
  const [closed, open] = await run({
    checks: [
      { kind: "command", run: [process.execPath, "-e", code], exit: 9 },
      { kind: "command", run: [process.execPath, "-e", code], network: true, contains: "reached" },
    ],
  });
  expect([closed?.outcome, open?.outcome]).toEqual(["passed", "passed"]);
});

test("stopping ends a running check, and nothing is judged", async () => {
  const seconds = ownSeconds();
  await using fixture = await openTaskFixture({ checks: [{ kind: "command", run: `sleep ${seconds}` }] });
  const done = fixture.runChecks();
  await expect.poll(() => running(seconds).length, { timeout: 60_000 }).toBeGreaterThan(0);
  fixture.stop();
  await expect(done).rejects.toThrow();
  expect(running(seconds)).toEqual([]);
});

test("51: git tells what is uncommitted, new commits, the branch, and whether only some files changed", async () => {
  await using fixture = await openTaskFixture({
    git: true,
    files: { "src/a.ts": "a", "docs/b.md": "b", "mine.txt": "before" },
    checks: [
      { kind: "git", clean: true },
      { kind: "git", commit: "" },
      { kind: "git", commit: "^feat: " },
      { kind: "git", branch: "main" },
      { kind: "git", branch: "topic" },
      { kind: "git", only: ["src/**"] },
      { kind: "git", only: ["docs/**"] },
    ],
  });
  await fixture.write("mine.txt", "uncommitted, by the owner");
  const baseline = await fixture.takeBaseline();
  expect(baseline.git?.branch).toBe("main");
  const outcomes = async () => (await fixture.verify(baseline)).results.map(({ outcome }) => outcome);
  expect(await outcomes()).toEqual(["failed", "failed", "failed", "passed", "failed", "passed", "passed"]);
  await fixture.write("src/a.ts", "changed");
  await fixture.write("src/new.ts", "new");
  fixture.git("add", "src");
  fixture.git("commit", "-q", "-m", "feat: more\n\nbody");
  expect(await outcomes()).toEqual(["failed", "passed", "passed", "passed", "failed", "passed", "failed"]);
  await fixture.write("mine.txt", "changed by the agent");
  await fixture.write("docs/fresh.md", "untracked");
  const results = (await fixture.verify(baseline)).results;
  expect(results[5]).toMatchObject({ outcome: "failed", output: "docs/fresh.md\nmine.txt" });
  fixture.git("add", "-A");
  fixture.git("commit", "-q", "-m", "rest");
  expect((await outcomes())[0]).toBe("passed");
});

test("13: git that was told to look away is not asked, and a folder without git proves nothing", async () => {
  await using fixture = await openTaskFixture({
    git: true,
    files: { "a.txt": "a" },
    checks: [
      { kind: "git", clean: true },
      { kind: "git", only: ["b.txt"] },
    ],
  });
  const baseline = await fixture.takeBaseline();
  fixture.git("update-index", "--assume-unchanged", "a.txt");
  await fixture.write("a.txt", "changed");
  expect((await fixture.verify(baseline)).results.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
  const results = await run({
    checks: [
      { kind: "git", clean: true },
      { kind: "not", of: { kind: "git", clean: true } },
    ],
  });
  expect(results.map(({ outcome }) => outcome)).toEqual(["failed", "error"]);
});

test("51: a repository that runs programs of its own does so inside the sandbox only", async () => {
  await using fixture = await openTaskFixture({
    git: true,
    files: { "a.txt": "a" },
    checks: [{ kind: "git", clean: true }],
  });
  await fixture.write("hook.sh", "#!/bin/sh\necho x > ../escaped\n");
  fixture.git("config", "core.fsmonitor", "sh ./hook.sh");
  fixture.git("config", "core.hooksPath", ".");
  await fixture.runChecks();
  expect(existsSync(join(fixture.root, "escaped"))).toBe(false);
});

test("http asks the address it is given, and follows nothing", async () => {
  await using server = await serve((path, respond) => {
    if (path === "/ok") respond(200, "all is well");
    else if (path === "/away") respond(302, "", { location: "/ok" });
    else if (path === "/large") respond(200, "x".repeat(3 * 1024 * 1024));
    else if (path !== "/never") respond(404, "");
  });
  const at = (path: string): string => `${server.url}${path}`;
  const checks: Checks = [
    { kind: "http", url: at("/ok"), contains: "well" },
    { kind: "http", url: at("/ok"), contains: "ill" },
    { kind: "http", url: at("/gone") },
    { kind: "http", url: at("/gone"), status: 404, method: "HEAD" },
    { kind: "http", url: at("/away") },
    { kind: "http", url: at("/away"), status: 302 },
    { kind: "http", url: at("/large"), contains: "y" },
    { kind: "http", url: at("/never"), timeoutMs: 200 },
    { kind: "http", url: "http://127.0.0.1:1/" },
    { kind: "http", url: "http://169.254.169.254/latest/meta-data" },
    { kind: "http", url: "http://[fe80::1]/" },
    { kind: "http", url: "http://[::ffff:169.254.169.254]/" },
    { kind: "http", url: "http://[::a9fe:a9fe]/" },
    { kind: "http", url: at("/ok").replace("//", "//user:password@") },
  ];
  const results = await run({ checks });
  expect(results.map(({ outcome }) => outcome)).toEqual([
    "passed",
    "failed",
    "failed",
    "passed",
    "failed",
    "passed",
    "error",
    "error",
    "failed",
    "error",
    "error",
    "error",
    "error",
    "error",
  ]);
  expect(results[4]?.message).toContain('points to "/ok", which is not followed');
  expect(results[9]?.message).toContain("not asked");
});

type Respond = (status: number, body: string, headers?: Record<string, string>) => void;

async function serve(answer: (path: string, respond: Respond) => void) {
  const server = createServer((request, response) => {
    answer(request.url ?? "", (status, body, headers) => response.writeHead(status, headers).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A time that no other process of this machine sleeps for, so that it names its own. */
function ownSeconds(): string {
  return String(randomInt(1e8, 1e9));
}

/** Processes whose command line has this word. */
function running(word: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").includes(word);
    } catch {
      return false;
    }
  });
}
