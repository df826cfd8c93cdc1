import { access, chmod, mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run, type Ran, type RunOptions } from "../test/heddle-process.ts";

const KEY = { OPENAI_API_KEY: "test-key" };

/** One line that begins with the program's name, on stderr, and nothing else anywhere. */
function expectOneLine(ran: Ran, code: number, line: RegExp): void {
  expect(ran).toMatchObject({ code, signal: null, stdout: "" });
  expect(ran.stderr).toMatch(/^heddle: [^\n]+\n$/);
  expect(ran.stderr).toMatch(line);
}

async function expectNoTrace(home: string): Promise<void> {
  await expect(access(home)).rejects.toThrow("ENOENT");
}

async function refused(args: readonly string[], options: Partial<RunOptions> = {}): Promise<{ ran: Ran }> {
  await using world = await openWorld();
  const ran = await run(args, { world, ...options });
  await expectNoTrace(world.home);
  return { ran };
}

test("an unknown command is answered with the nearest one", async () => {
  const { ran } = await refused(["exce", "hello"]);
  expectOneLine(ran, 2, /unknown command "exce"; did you mean "exec"\?/);
});

test("an unknown flag is answered with the nearest one", async () => {
  const { ran } = await refused(["exec", "--jsno", "hello"], { env: KEY });
  expectOneLine(ran, 2, /unknown option --jsno; did you mean --json\?/);
});

test("flags before the command are those of exec, and of a command that has them; others are refused", async () => {
  expectOneLine((await refused(["--frobnicate"])).ran, 2, /unknown option --frobnicate; see heddle --help/);
  expectOneLine((await refused(["-m", "x"])).ran, 2, /a command is missing: heddle -m x exec/);
  expectOneLine(
    (await refused(["-m", "x", "doctor"])).ran,
    2,
    /-m is an option of exec; options of doctor come after it/,
  );
  // Callers of Codex configure its server so; the key is read, and refused as it is after the name.
  expectOneLine((await refused(["-c", "model=1", "app-server"])).ran, 2, /-c model: model must be a string/);
});

test("a bad config names file and line, and is left as it is", async () => {
  await using world = await openWorld();
  const config = await world.file("home/config.toml", `model = "gpt-5"\nsandbox_mod = "read-only"\n`);
  expectOneLine(
    await run(["exec", "hello"], { world, env: KEY }),
    2,
    /config\.toml:2: unknown key "sandbox_mod"; did you mean "sandbox_mode"\?/,
  );
  expect(await readdir(world.home)).toEqual([path.basename(config)]);
});

test("a config torn in the middle names its line", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", `model = "gpt-5"\nmodel_provider = "op`);
  expectOneLine(await run(["exec", "hello"], { world, env: KEY }), 2, /config\.toml:2: /);
});

test("a missing folder, and a file in its place, are named", async () => {
  await using world = await openWorld();
  const file = await world.file("a-file", "x");
  expectOneLine(await run(["exec", "-C", "gone", "hello"], { world, env: KEY }), 2, /-C .*gone does not exist/);
  expectOneLine(await run(["exec", "-C", file, "hello"], { world, env: KEY }), 2, /is not a folder/);
  await expectNoTrace(world.home);
});

test("a folder outside any git repository is refused with both ways out", async () => {
  await using world = await openWorld();
  const bare = path.join(world.root, "bare");
  await mkdir(bare);
  const ran = await run(["exec", "hello"], { world, env: KEY, cwd: bare });
  expectOneLine(ran, 2, /not inside a git repository.*git init.*--skip-git-repo-check/);
});

test("a missing key names the variable, with the exit code for authentication", async () => {
  const { ran } = await refused(["exec", "hello"]);
  expectOneLine(ran, 3, /OpenAI needs a key: set the environment variable OPENAI_API_KEY/);
});

test("a missing key of a provider in the config names that provider's variable", async () => {
  await using world = await openWorld();
  await world.file(
    "codex/config.toml",
    `model = "m"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "http://127.0.0.1:1/v1"\nenv_key = "MOCK_KEY"\n`,
  );
  expectOneLine(await run(["exec", "hello"], { world }), 3, /MOCK_KEY/);
  await expectNoTrace(world.home);
});

test("an unknown provider is answered with those that are known", async () => {
  const { ran } = await refused(["exec", "-c", "model_provider=opnai", "hello"], { env: KEY });
  expectOneLine(ran, 2, /there is no provider "opnai".*openai/);
});

test("a model that the provider's maker does not have is refused before it is asked", async () => {
  const { ran } = await refused(["exec", "-c", "model_provider=openai", "-m", "gtp-5.5", "hello"], { env: KEY });
  expectOneLine(ran, 2, /OpenAI has no model "gtp-5\.5"; did you mean "gpt-5\.5"\?/);
});

test("an unknown profile is named", async () => {
  const { ran } = await refused(["exec", "-p", "fast", "hello"], { env: KEY });
  expectOneLine(ran, 2, /there is no profile "fast"/);
});

test("an empty prompt is refused, as argument and on standard input", async () => {
  expectOneLine((await refused(["exec", "  "], { env: KEY })).ran, 2, /prompt is empty/);
  expectOneLine((await refused(["exec", "-"], { env: KEY, stdin: "\n" })).ran, 2, /prompt is empty/);
});

test("a binary prompt is refused: NUL bytes, and bytes that are not UTF-8", async () => {
  expectOneLine((await refused(["exec", "-"], { env: KEY, stdin: "a\u0000b" })).ran, 2, /NUL bytes/);
  const bytes = new Uint8Array([0x61, 0xff, 0xfe, 0x62]);
  expectOneLine((await refused(["exec", "-"], { env: KEY, stdin: bytes })).ran, 2, /not UTF-8 text/);
});

test("more standard input than any prompt is refused without reading it all", async () => {
  const { ran } = await refused(["exec", "-"], { env: KEY, stdin: "x".repeat(9 * 1024 * 1024) });
  expectOneLine(ran, 2, /standard input is over 8 MiB/);
});

test("several words without quotes are answered with the quoted form", async () => {
  const { ran } = await refused(["exec", "fix", "the", "test"], { env: KEY });
  expectOneLine(ran, 2, /heddle exec "fix the test"/);
});

test("an image that is missing, or is none, is named", async () => {
  await using world = await openWorld();
  const text = await world.file("text.png", "not an image");
  expectOneLine(await run(["exec", "-i", "gone.png", "hi"], { world, env: KEY }), 2, /-i .*gone\.png does not exist/);
  expectOneLine(await run(["exec", "-i", text, "hi"], { world, env: KEY }), 2, /is not a PNG, JPEG, GIF or WebP image/);
  await expectNoTrace(world.home);
});

test("an unwritable -o is found before the run", async () => {
  await using world = await openWorld();
  expectOneLine(await run(["exec", "-o", "gone/x.txt", "hi"], { world, env: KEY }), 2, /-o .*gone does not exist/);
  expectOneLine(await run(["exec", "-o", world.root, "hi"], { world, env: KEY }), 2, /is a folder; name a file/);
  await expectNoTrace(world.home);
});

test.runIf(process.getuid?.() !== 0)(
  "an -o without the right to write is found before the run (not as root)",
  async () => {
    await using world = await openWorld();
    const file = await world.file("closed.txt", "old");
    await chmod(file, 0o444);
    expectOneLine(await run(["exec", "-o", file, "hi"], { world, env: KEY }), 2, /no permission to write/);
  },
);

test("a bad schema file is named: missing, not JSON, not an object", async () => {
  await using world = await openWorld();
  const torn = await world.file("torn.json", `{"type": "obj`);
  const list = await world.file("list.json", `[1]`);
  const exec = (file: string): Promise<Ran> => run(["exec", "--output-schema", file, "hi"], { world, env: KEY });
  expectOneLine(await exec("gone.json"), 2, /--output-schema .*gone\.json does not exist/);
  expectOneLine(await exec(torn), 2, /torn\.json is not JSON/);
  expectOneLine(await exec(list), 2, /list\.json is not a JSON Schema/);
  await expectNoTrace(world.home);
});

test("a bad script is named with the step that is wrong", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", `[{"text": "a"}, {"txt": "b"}]`);
  expectOneLine(await run(["exec", "--script", script, "hi"], { world }), 2, /script\.json: step 2/);
  expectOneLine(await run(["exec", "--script", "gone.json", "hi"], { world }), 2, /gone\.json cannot be read/);
  await expectNoTrace(world.home);
});

test("flags that contradict each other, and a time limit that is none, are refused", async () => {
  const both = await refused(["exec", "-s", "read-only", "--dangerously-bypass-approvals-and-sandbox", "hi"], {
    env: KEY,
  });
  expectOneLine(both.ran, 2, /contradicts -s read-only/);
  expectOneLine((await refused(["exec", "--timeout", "soon", "hi"], { env: KEY })).ran, 2, /--timeout "soon"/);
});

test("with --json a refusal is also told as JSON lines, the last one terminal, and still one line on stderr", async () => {
  await using world = await openWorld();
  const ran = await run(["exec", "--json", "hello"], { world });
  expect(ran.code).toBe(3);
  const [error, end, ...more] = ran.stdout.trimEnd().split("\n");
  expect(JSON.parse(error ?? "")).toMatchObject({ type: "error", code: "auth.missing" });
  expect(JSON.parse(end ?? "")).toMatchObject({ type: "turn.failed", error: { code: "auth.missing" } });
  expect(more).toEqual([]);
  expect(ran.stderr).toMatch(/^heddle: [^\n]+\n$/);
});

test("text of the user that steers a terminal is shown, not obeyed", async () => {
  const { ran } = await refused(["\u001b]0;title\u0007"]);
  expectOneLine(ran, 2, /unknown command "\\x1b\]0;title\\x07"/);
});

test("a current folder that was removed is named, not a stack", async () => {
  await using world = await openWorld();
  const gone = path.join(world.root, "gone");
  await mkdir(gone);
  const ran = await run([], { world, cwd: gone, launcher: await world.file("leave.cjs", LEAVE) });
  expectOneLine(ran, 2, /the current folder no longer exists/);
});

const LEAVE = `
require("node:fs").rmdirSync(process.cwd());
const { status } = require("node:child_process").spawnSync(process.execPath, [${JSON.stringify(LAUNCHER)}, "exec", "hi"], { stdio: "inherit" });
process.exit(status);
`;

test("an answer that could not be written is not a success", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", `[{"text": "ok"}]`);
  const shell = await world.file("full.cjs", FULL);
  for (const flags of [
    ["exec", "--script", script, "hi"],
    ["exec", "--json", "--script", script, "hi"],
    ["--version"],
  ]) {
    const ran = await run(flags, { world, launcher: shell });
    expect(ran.code).toBe(8);
    expect(ran.stderr).toMatch(/heddle: standard output could not be written: the disk is full\n$/);
  }
});

const FULL = `
const full = require("node:fs").openSync("/dev/full", "w");
const { status } = require("node:child_process").spawnSync(process.execPath, [${JSON.stringify(LAUNCHER)}, ...process.argv.slice(2)], { stdio: ["ignore", full, "inherit"] });
process.exit(status);
`;
