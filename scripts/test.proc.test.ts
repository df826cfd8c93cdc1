import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { inMemory } from "./test-folders.ts";

const SCRIPT = fileURLToPath(new URL("test.ts", import.meta.url));
const NODE_MODULES = fileURLToPath(new URL("../node_modules", import.meta.url));
const COST = fileURLToPath(new URL("test-cost.ts", import.meta.url));
const OPTIONS = { include: ["*.test.ts"], setupFiles: [COST], pool: "forks", fileParallelism: false };
const CONFIG = `export default { test: ${JSON.stringify(OPTIONS)} };`;
const HEAD = `import { beforeAll, describe, expect, test } from "vitest";\n`;

interface Run {
  readonly code: number | null;
  readonly lines: readonly string[];
  readonly lastLine: string | undefined;
}

/** Plants a project of its own, so that suites which fail or crash can be run by the real script. */
function plant(suites: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), "planted-"));
  symlinkSync(NODE_MODULES, join(root, "node_modules"));
  writeFileSync(join(root, "vitest.config.ts"), CONFIG);
  for (const [name, body] of Object.entries(suites)) writeFileSync(join(root, name), HEAD + body);
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
}

function start(root: string, args: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [SCRIPT, `--root=${root}`, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const ended = once(child, "close").then(([code]): Run => {
    // The two arrive in any order; the last line is one of the first.
    const lines = `${output.stderr}\n${output.stdout}`.trimEnd().split("\n");
    return { code: code as number | null, lines, lastLine: lines.at(-1) };
  });
  return { child, ended };
}

async function run(
  suites: Readonly<Record<string, string>>,
  args?: readonly string[],
  environment?: NodeJS.ProcessEnv,
) {
  using project = plant(suites);
  return await start(project.root, args, environment).ended;
}

async function fileAppears(folder: string, name: string): Promise<void> {
  using watcher = Object.assign(watch(folder), { [Symbol.dispose]: () => watcher.close() });
  while (!existsSync(join(folder, name))) await once(watcher, "change");
}

/** A dead process may stay as a zombie for as long as its new parent does not collect it. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

const PASSES = `test("passes", () => expect(1).toBe(1));`;

test("passed and skipped tests are counted and the run succeeds", async () => {
  const result = await run({
    "a.test.ts": PASSES,
    "b.test.ts": `${PASSES} test.runIf(false)("cannot run here", () => {});`,
  });
  expect(result).toMatchObject({ code: 0, lastLine: "2 passed, 0 failed, 1 skipped" });
  expect(result.lines.filter((line) => /\d+ passed, \d+ failed/.test(line))).toHaveLength(1);
});

test("14: files are listed by the processor time of their worker and of its children", async () => {
  const busy = `for (let used = 0; used < 5e5; used = process.cpuUsage().user) for (let i = 0; i < 1e6; i++);`;
  const child = `execFileSync(process.execPath, ["-e", ${JSON.stringify(busy)}]);`;
  const result = await run({
    "a.test.ts": PASSES,
    "b.test.ts": `import { execFileSync } from "node:child_process"; test("starts", () => { ${child} });`,
  });
  const at = result.lines.indexOf("most expensive files: processor time, time");
  const [first, second] = result.lines.slice(at + 1).map((line) => /^ *([\d.]+) s +[\d.]+ s {2}(.*)$/.exec(line));
  expect([first?.[2], second?.[2]]).toEqual(["b.test.ts", "a.test.ts"]);
  expect(Number(first?.[1])).toBeGreaterThanOrEqual(0.5);
  expect(Number(second?.[1])).toBeLessThan(0.5);
});

test("a failing test, a file that does not load and a failing hook each count as failed", async () => {
  const result = await run(
    {
      "a.test.ts": PASSES,
      "fails.test.ts": `test("fails", () => expect(1).toBe(2));`,
      "loads-not.test.ts": `import "./not-there.ts";\n${PASSES}`,
      "hook.test.ts": `describe("suite", () => { beforeAll(() => { throw new Error("no set-up"); }); ${PASSES} });`,
    },
    ["--once"],
  );
  expect(result.code).toBe(1);
  expect(result.lastLine).toMatch(/^1 passed, 3 failed(, 1 skipped)?$/);
});

test("an unhandled error after a passed test fails the run", async () => {
  const result = await run({
    "a.test.ts": `test("passes", async () => {
      setTimeout(() => { throw new Error("nobody waits"); });
      await new Promise((done) => setTimeout(done, 50));
    });`,
  });
  expect(result).toMatchObject({ code: 1, lastLine: "1 passed, 1 failed" });
});

const FAILS_FIRST = `import { existsSync, writeFileSync } from "node:fs";
  test("fails first", () => {
    const isSecond = existsSync("was-here");
    writeFileSync("was-here", "");
    expect(isSecond).toBe(true);
  });`;

test("what fails and passes when its file is run by itself is printed as unsteady and fails nothing", async () => {
  const suites = { "a.test.ts": PASSES, "unsteady.test.ts": `${FAILS_FIRST} ${PASSES}` };
  const result = await run(suites);
  expect(result).toMatchObject({ code: 0, lastLine: "3 passed, 0 failed" });
  expect(result.lines).toContain("failed, and run once more by themselves: unsteady.test.ts");
  expect(result.lines).toContain("unsteady, failed and then passed: unsteady.test.ts > fails first");
  expect(await run(suites, ["--once"])).toMatchObject({ code: 1, lastLine: "2 passed, 1 failed" });
});

test("what fails twice has failed, beside what is unsteady", async () => {
  const result = await run({ "a.test.ts": `${FAILS_FIRST} test("fails", () => expect(1).toBe(2));` });
  expect(result).toMatchObject({ code: 1, lastLine: "1 passed, 1 failed" });
  expect(result.lines).toContain("unsteady, failed and then passed: a.test.ts > fails first");
});

test("when many files fail at once none is run again", async () => {
  const names = Array.from({ length: 9 }, (_, index) => `${index}.test.ts`);
  const result = await run(
    Object.fromEntries(names.map((name) => [name, FAILS_FIRST.replaceAll("was-here", `${name}.seen`)])),
  );
  expect(result).toMatchObject({ code: 1, lastLine: "0 passed, 9 failed" });
});

test("a run without tests fails", async () => {
  expect(await run({})).toMatchObject({ code: 1, lastLine: "0 passed, 1 failed" });
  expect(await run({ "a.test.ts": PASSES }, ["no-such-file"])).toMatchObject({
    code: 1,
    lastLine: "0 passed, 1 failed",
  });
});

test("a worker that dies fails the run", async () => {
  const result = await run({ "a.test.ts": `test("dies", () => { process.kill(process.pid, "SIGKILL"); });` });
  expect(result.code).toBe(1);
  expect(result.lastLine).toMatch(/^0 passed, [12] failed$/);
});

test("a crash of vitest itself fails the run", async () => {
  const result = await run({ "a.test.ts": `test("kills", () => { process.kill(process.ppid, "SIGKILL"); });` });
  expect(result).toMatchObject({ code: 1, lastLine: "0 passed, 1 failed" });
  expect(result.lines).toContain("failed outside a test: vitest was killed by SIGKILL");
});

test("an interrupt ends the workers and is not a success", async () => {
  using project = plant({
    "a.test.ts": `import { writeFileSync } from "node:fs";
      test("waits", async () => {
        writeFileSync("worker.pid", String(process.pid));
        await new Promise(() => setInterval(() => {}, 1000));
      }, 60_000);`,
  });
  const running = start(project.root);
  await fileAppears(project.root, "worker.pid");
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, lastLine: "0 passed, 1 failed" });
  const worker = Number(readFileSync(join(project.root, "worker.pid"), "utf8"));
  await vi.waitFor(() => expect(isAlive(worker)).toBe(false), { timeout: 5_000 });
});

test("a worker that never returns to its event loop is ended and named", async () => {
  const result = await run({ "stuck.test.ts": `test("loops", () => { for (;;); });` }, ["--stall-after=5"]);
  expect(result).toMatchObject({ code: 1, lastLine: "0 passed, 1 failed" });
  expect(result.lines.join("\n")).toContain("files still running: stuck.test.ts");
});

test("tests see a fresh home, a compile cache of the run and no keys", async () => {
  const suite = `import { homedir, tmpdir } from "node:os";
    import { dirname, join } from "node:path";
    test("sees nothing", () => {
      expect(homedir()).toBe(join(dirname(tmpdir()), "home"));
      expect(process.env["NODE_COMPILE_CACHE"]).toBe(join(dirname(tmpdir()), "compiled"));
      const names = Object.keys(process.env).filter((name) => /_API_KEY$|^HEDDLE_(?!E2E_)|^CODEX_|^GIT_/.test(name));
      expect(names).toEqual([]);
    });`;
  const environment = {
    OPENAI_API_KEY: "x",
    HEDDLE_HOME: "/x",
    CODEX_HOME: "/x",
    GIT_DIR: "/x",
    NODE_COMPILE_CACHE: "/x",
  };
  expect(await run({ "a.test.ts": suite }, [], environment)).toMatchObject({ code: 0, lastLine: "1 passed, 0 failed" });
});

const canMount = inMemory({ temporary: tmpdir() }).length > 0;

test.runIf(canMount)(
  "14: the temporary folder is in memory and gone afterwards; a full run has it on disk (needs the right to mount)",
  async () => {
    const suite = `import { statSync, writeFileSync } from "node:fs";
      import { tmpdir } from "node:os";
      import { dirname } from "node:path";
      test("looks", () => {
        const [inner, outer] = [tmpdir(), dirname(tmpdir())];
        writeFileSync(inner + "/a", "a");
        writeFileSync("seen.json", JSON.stringify([statSync(inner).dev !== statSync(outer).dev, outer]));
      });`;
    for (const isFull of [false, true]) {
      using project = plant({ "a.test.ts": suite });
      await start(project.root, [], { HEDDLE_E2E_FULL: isFull ? "1" : "0" }).ended;
      const [isMounted, outer] = JSON.parse(readFileSync(join(project.root, "seen.json"), "utf8")) as [boolean, string];
      expect({ isFull, isMounted, isLeft: existsSync(outer) }).toEqual({ isFull, isMounted: !isFull, isLeft: false });
    }
  },
);

test("14: where nothing can be mounted the command stays as it is", () => {
  expect(inMemory({ temporary: join(tmpdir(), "not-there") })).toEqual([]);
});

test("a wrong flag is one line and runs nothing", async () => {
  const result = await run({ "a.test.ts": PASSES }, ["--wat"]);
  expect(result.code).toBe(2);
  expect(result.lines).toHaveLength(1);
  expect(result.lastLine).toContain("--wat");
});
