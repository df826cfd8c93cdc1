/**
 * F05, F06, F07, F45: a disk that is full, a home that cannot be written or belongs to somebody else, a torn
 * configuration. Every refusal is typed and names the path; nothing unsaved is acknowledged; what was saved can be read.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync } from "node:fs";
import { mkdir, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Heddle } from "@heddle/agent";
import type { TurnSettings } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { check, checkHome, NOTHING_FOUND, reopen } from "./checker.ts";
import { execArgs, jsonLines, LAUNCHER, openWorld, refusals, run, start, type World } from "./world.ts";

const isRoot = process.getuid?.() === 0;
const canMount = isRoot && spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
const NOBODY = { uid: 65_534, gid: 65_534 };
/** A checkout in a closed folder cannot be run by anybody else. */
const canStepDown = isRoot && spawnSync(process.execPath, [LAUNCHER, "--version"], NOBODY).status === 0;
const other = canStepDown ? { uid: NOBODY.uid } : {};

const WAITING =
  "echo started; while [ ! -e go ]; do sleep 0.05; done; echo went >> effects.log; head -c 20000 /dev/urandom | base64";

// To root every folder is open; the preflight of a run is a child of its own, so that another user can start it.
test.runIf(canStepDown)(
  "14: -C into a folder that this user cannot read is refused by the preflight (as root)",
  async () => {
    await using world = await openWorld();
    const closed = path.join(world.root, "closed");
    await mkdir(closed, { mode: 0o700 });
    chmodSync(world.root, 0o755);
    const ran = await run(["exec", "--preflight", "-C", closed, "hi"], { world, ...other });
    expect(ran).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^failed +workspace +.*cannot be read by this user; run chmod/m),
    });
  },
);

describe("F05 a disk that is full", () => {
  test.runIf(canMount)(
    "(a real one, mounted as root) fails the turn, keeps what was saved readable, and works again with room (G1 G8)",
    async () => {
      await using world = await openWorld();
      await using disk = await smallDisk(world, "8m");
      const env = { HEDDLE_HOME: disk.home };
      const done = await script(world, "done", [{ text: "done" }]);
      expect(await run(execArgs("--script", done), { world, env })).toMatchObject({ code: 0 });

      const waiting = await script(world, "waiting", [
        { calls: [{ tool: "bash", args: { command: WAITING } }] },
        { text: "done" },
      ]);
      await using running = start(execArgs("--script", waiting), { world, env });
      await running.sees('"command_execution"');
      await disk.fill();
      await world.file("workspace/go", "");
      const ran = await running.ended;
      expect(ran).toMatchObject({ code: 8, signal: null });
      const lines = jsonLines(ran.stdout);
      expect(lines.at(-1)).toMatchObject({ type: "turn.failed", error: { code: "store.full" } });
      expect(await world.effects()).toEqual(["went"]);

      // The end of the turn gave up the reserve, and what was in the WAL is in the database now: there was room again.
      await disk.fill();
      const refused = await run(execArgs("--script", done), { world, env });
      expect(refused).toMatchObject({ code: 8, stderr: expect.stringContaining("no space left") });
      expect(refusals(refused.stdout)).toEqual(["store.full"]);
      const { stdout: listed } = await run(["threads", "list", "--json"], { world, env });
      expect(listed.trim().split("\n")).toHaveLength(2);
      expect(await run(["verify"], { world, env })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("clean"),
      });

      await disk.free();
      const again = await run(execArgs("--script", done), { world, env });
      expect(again).toMatchObject({ code: 0 });
      const acknowledged = [lines, jsonLines(again.stdout)].map(([first]) => ({ threadId: first?.thread_id ?? "" }));
      expect(await checkHome(disk.home, { acknowledged, effects: await world.effects() })).toEqual(NOTHING_FOUND);
    },
  );

  test.runIf(canMount)(
    "(a real one, mounted as root) recovers within five seconds of room without a restart, and an interrupt works meanwhile",
    async () => {
      await using world = await openWorld();
      await using disk = await smallDisk(world, "8m");
      await using heddle = await reopen(disk.home, [
        {
          id: "scripted",
          family: "openai",
          script: [{ text: "one" }, { calls: [{ tool: "exec_command", args: { cmd: "sleep 60" } }] }, { text: "two" }],
        },
      ]);
      const settings: TurnSettings = {
        provider: "scripted",
        model: "scripted",
        sandboxMode: "danger-full-access",
        networkAccess: false,
        writableRoots: [],
        approvalPolicy: "never",
      };
      const input = [{ type: "text" as const, text: "go" }];
      const first = await heddle
        .as("user:owner")
        .startTurn({ thread: { workspace: world.workspace, origin: "e2e" }, input, settings });
      const { threadId: thread } = first;
      expect((await first.done).body.status).toBe("completed");
      const second = await heddle.as("user:owner").startTurn({ thread, input, settings });
      await intended(heddle, thread);
      await disk.fill();
      await expect(
        heddle.as("user:owner").startTurn({ thread: { workspace: world.workspace, origin: "e2e" }, input, settings }),
      ).rejects.toMatchObject({
        code: "store.full",
      });
      await heddle
        .as("user:owner")
        .interrupt(second.turnId, { code: "turn.interrupted", message: "enough" })
        .catch(() => undefined);
      expect((await second.done).body).toMatchObject({ status: "interrupted" });
      await disk.free();
      const freedAt = performance.now();
      const third = await heddle.as("user:owner").startTurn({ thread, input, settings });
      expect((await third.done).body.status).toBe("completed");
      expect(performance.now() - freedAt).toBeLessThan(5000);
      const acknowledged = [first, second, third].map(({ threadId, turnId }) => ({ threadId, turnId }));
      expect(await check(heddle, { acknowledged, effects: [] })).toEqual(NOTHING_FOUND);
    },
  );

  test("(a failpoint) at admission: nothing is acknowledged, nothing is there", async () => {
    await using world = await openWorld();
    const done = await script(world, "done", [{ text: "done" }]);
    const env = { HEDDLE_FAILPOINT: "journal.append.before-insert=enospc" };
    const ran = await run(execArgs("--script", done), { world, env });
    expect(ran).toMatchObject({ code: 8, stderr: expect.stringContaining(world.home) });
    expect(refusals(ran.stdout)).toEqual(["store.full"]);
    await using heddle = await reopen(world.home);
    expect(await heddle.journal.read({ after: 0 })).toEqual([]);
  });
});

describe("F07 a home that cannot be written", () => {
  test.runIf(canStepDown || !isRoot)(
    "(as somebody who is not root) is refused with its path and what to do; reading commands work, and no file changes",
    async () => {
      await using world = await usedWorld();
      using _lock = lock(world.home);
      const before = await filesOf(world.home);
      const ran = await run(execArgs("--script", path.join(world.root, "done.json")), { world, ...other });
      expect(ran).toMatchObject({ code: 8, stderr: expect.stringContaining(world.home) });
      expect(refusals(ran.stdout)).toEqual(["store.read-only"]);
      expect(ran.stderr).toMatch(/writable/);
      const listed = await run(["threads", "list", "--json"], { world, ...other });
      expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(world.workspace) });
      expect(await run(["verify"], { world, ...other })).toMatchObject({ code: 0 });
      expect(await filesOf(world.home)).toEqual(before);
    },
  );

  test.runIf(canStepDown)(
    "(as root, to have two users) because it belongs to somebody else, is refused with its path",
    async () => {
      await using world = await usedWorld();
      chownSync(world.home, 0, 0);
      chmodSync(world.home, 0o700);
      const before = await filesOf(world.home);
      const ran = await run(execArgs("--script", path.join(world.root, "done.json")), { world, ...other });
      expect(ran.code).not.toBe(0);
      expect(ran.stderr).toContain(world.home);
      expect(
        ran.stderr
          .trim()
          .split("\n")
          .filter((line) => !line.includes("no model is used")),
      ).toHaveLength(1);
      expect(await filesOf(world.home)).toEqual(before);
    },
  );
});

describe("F45 a torn configuration", () => {
  test.each([
    ['model = "gpt-5.5"\n[model_providers.mine\nbase_url = ', 2],
    ['model = "gpt', 1],
    ["\u0000\u0000\u0000\u0000", 1],
  ])("%j is refused with file and line, and left as it is", async (text, line) => {
    await using world = await openWorld();
    const config = await world.file("home/config.toml", text);
    const done = await script(world, "done", [{ text: "done" }]);
    const ran = await run(execArgs("--script", done), { world });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining(`${config}:${line}`) });
    expect(await readFile(config, "utf8")).toBe(text);
    // Compiled code is a cache, kept here by whoever cannot write beside the program.
    expect((await readdir(world.home)).filter((name) => name !== "cache")).toEqual(["config.toml"]);
  });

  test("an empty one says nothing, and is left as it is", async () => {
    await using world = await openWorld();
    const config = await world.file("home/config.toml", "");
    const done = await script(world, "done", [{ text: "done" }]);
    expect(await run(execArgs("--script", done), { world })).toMatchObject({ code: 0 });
    expect(await readFile(config, "utf8")).toBe("");
  });

  test("a torn signing key is not replaced, and the record stays readable", async () => {
    await using world = await usedWorld();
    const key = path.join(world.home, "keys", "journal.key");
    await truncate(key, 10);
    const before = await readFile(key);
    const ran = await run(execArgs("--script", path.join(world.root, "done.json")), { world, ...other });
    expect(ran.signal).toBeNull();
    expect(await readFile(key)).toEqual(before);
    expect(await run(["threads", "list", "--json"], { world, ...other })).toMatchObject({ code: 0 });
  });
});

async function intended(heddle: Heddle, stream: string): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  for await (const { body } of heddle.journal.tail({ stream, after: 0, signal })) {
    if (body.type === "tool.intended") return;
  }
  throw new Error("no call was intended");
}

async function script(world: World, name: string, steps: readonly unknown[]): Promise<string> {
  return await world.file(`${name}.json`, JSON.stringify(steps));
}

/** A world that belongs to the other user, with one turn done. */
async function usedWorld(): Promise<World> {
  const world = await openWorld();
  const done = await script(world, "done", [{ text: "done" }]);
  if (canStepDown) spawnSync("chown", ["-R", "65534:65534", world.root]);
  expect(await run(execArgs("--script", done), { world, ...other })).toMatchObject({ code: 0 });
  return world;
}

/** Until it is disposed of nobody but root can write there. */
function lock(home: string): Disposable {
  spawnSync("chmod", ["-R", "a-w", home]);
  return {
    [Symbol.dispose]: () => {
      spawnSync("chmod", ["-R", "u+w", home]);
    },
  };
}

async function filesOf(home: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile()) files[path.relative(home, file)] = (await readFile(file)).toString("hex");
  }
  return files;
}

interface SmallDisk extends AsyncDisposable {
  readonly home: string;
  fill(): Promise<void>;
  free(): Promise<void>;
}

async function smallDisk(world: World, size: string): Promise<SmallDisk> {
  const folder = path.join(world.root, "disk");
  await mkdir(folder);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder], { encoding: "utf8" });
  expect(mounted.status, mounted.stderr).toBe(0);
  const filler = path.join(folder, "filler");
  return {
    home: path.join(folder, "home"),
    async fill() {
      const error = await writeFile(filler, Buffer.alloc(64 * 1024 * 1024)).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: "ENOSPC" });
    },
    free: () => rm(filler),
    async [Symbol.asyncDispose]() {
      spawnSync("umount", ["--lazy", folder]);
      await Promise.resolve();
    },
  };
}
