/** docs/use/tasks.md, followed as a new user would: every file it shows is written, every command it shows is run. */
import { chmod, readFile } from "node:fs/promises";
import path from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run, start, type World } from "../../test/heddle-process.ts";
import { FIX, makeFailingProject } from "../../test/failing-project.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

const ROOT = path.join(import.meta.dirname, "../../../..");
const page = await readFile(path.join(ROOT, "docs/use/tasks.md"), "utf8");

interface Block {
  readonly language: string;
  readonly text: string;
}

const blocks: readonly Block[] = [...page.matchAll(/^(`{3,})(\w+)\n([^]*?)^\1$/gm)].map(
  ([, , language = "", body = ""]) => ({
    language,
    text: body,
  }),
);

/** An agent for all tasks of the page: it does what the goal asks for, and then says so. */
const WORK: Readonly<Record<string, string>> = {
  "fix the failing test": FIX,
  "sum.sh adds wrongly": "printf 'echo $(($1 + $2))\\n' > sum.sh",
  "Write CHANGES.md": "printf -- '- one\\n' > CHANGES.md",
  "Write OUTLINE.md": "touch OUTLINE.md",
  "Write MANUAL.md": "touch MANUAL.md",
};

function workFor(body: unknown): string {
  const asked = JSON.stringify(body);
  return Object.entries(WORK).find(([goal]) => asked.includes(goal))?.[1] ?? "true";
}

async function sh(world: World, script: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const env = { ...world.env, ...MOCK_KEY, PATH: `${world.root}/bin:${world.env["PATH"]}` };
  const child = spawn("sh", ["-ec", script], { cwd: world.workspace, env, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, output: `${stdout}${stderr}` };
}

test("every command of the page about tasks does what it says, in its order", { timeout: 240_000 }, async () => {
  await using mock = await openMockWorld({
    respond: ({ answers, body }) =>
      answers === 0 ? { calls: [{ tool: "exec_command", args: { cmd: workFor(body) } }] } : { text: "It is done." },
  });
  const { world } = mock;
  await makeFailingProject(world);
  await world.file("bin/heddle", `#!/bin/sh\nexec "${process.execPath}" "${LAUNCHER}" "$@"\n`);
  await chmod(`${world.root}/bin/heddle`, 0o755);
  let commands = 0;
  for (const block of blocks) {
    const [, file] = /^(?:---\n)?# (\S+\.(?:yaml|md))\n/.exec(block.text) ?? [];
    if (file !== undefined) await world.file(`workspace/${file}`, block.text);
    if (block.language !== "sh") continue;
    for (const line of block.text.trimEnd().split("\n")) {
      commands += 1;
      if (line.endsWith("# until Ctrl-C")) await untilCtrlC(world, line);
      else {
        const { code, output } = await sh(world, line);
        expect(code, `${line}\n${output}`).toBe(0);
      }
    }
  }
  expect(commands).toBeGreaterThan(20);
  const listed = await sh(world, "heddle task list --state verified");
  for (const name of ["fix the failing test", "fix the sum", "Keep a list of changes", "outline", "manual"])
    expect(listed.output).toContain(name);
});

async function untilCtrlC(world: World, line: string): Promise<void> {
  const words = line.replace(/#.*$/, "").trim().split(/\s+/).slice(1);
  await using running = start(words, { world, env: MOCK_KEY });
  await running.sees("Ctrl-C stops it");
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130 });
}

test("the page names every key that a task can have", async () => {
  await using world = await openWorld();
  const ran = await run(["schema", "task"], { world });
  const { $defs } = JSON.parse(ran.stdout);
  const keys = Object.keys($defs.task.properties);
  expect(keys.length).toBeGreaterThan(20);
  for (const key of keys) expect(page).toContain(`\`${key}\``);
});

test("the examples are tasks without a mistake", async () => {
  await using world = await openWorld();
  const ran = await run(["task", "lint", path.join(ROOT, "examples/tasks")], { world });
  expect(ran).toMatchObject({ code: 0, stdout: "4 tasks, nothing wrong\n" });
});
