import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { ERROR_CODES, EXIT } from "@heddle/protocol";
import { codexExecSchema } from "@heddle/dialects/exec-schema";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { LINE_TYPES } from "./capabilities.ts";

test("the capabilities are those that callers rely on", async () => {
  await using world = await openWorld();
  const ran = await run(["exec", "--describe-capabilities"], { world });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const described = JSON.parse(ran.stdout);
  expect(described).toMatchObject({
    type: "heddle.capabilities",
    version: 1,
    subcommands: ["resume", "fork", "review"],
    exit_codes: {
      ok: 0,
      turnFailed: 1,
      usage: 2,
      auth: 3,
      provider: 4,
      schema: 5,
      limit: 6,
      policy: 7,
      infrastructure: 8,
      timeout: 124,
      interrupted: 130,
      terminated: 143,
    },
    sandbox_modes: ["read-only", "workspace-write", "danger-full-access"],
    sandbox_levels: ["namespaces", "bwrap", "seatbelt", "none"],
    wires: ["openai-responses", "openai-chat", "anthropic", "gemini", "scripted"],
    schemas: ["exec", "result"],
  });
  for (const flag of [
    ..."timeout idle-timeout max-turns max-tokens max-cost retry result-json artifact-root run-id prompt-file".split(
      " ",
    ),
    ..."manifest describe-capabilities preflight allow-tool codex-exit-codes json output-schema model sandbox".split(
      " ",
    ),
  ]) {
    expect(described.flags).toContain(`--${flag}`);
  }
  expect(described.repeatable_flags).toEqual(
    expect.arrayContaining(["--add-dir", "--allow-tool", "--config", "--image"]),
  );
  expect(described.providers).toEqual(expect.arrayContaining(["openai", "anthropic", "gemini", "scripted"]));
  expect(described.tools).toEqual(expect.arrayContaining(["apply_patch", "bash", "edit", "exec_command", "read"]));
  expect(Object.keys(described.error_codes)).toEqual([...ERROR_CODES]);
  expect(described.event_types).toContain("turn.completed");
  // Nothing was started, so nothing was made.
  await expect(readdir(world.home)).rejects.toThrow("ENOENT");
});

test("the lines that are described are those that have a schema", () => {
  const text = JSON.stringify(codexExecSchema());
  for (const type of LINE_TYPES) expect(text).toContain(`"${type}"`);
});

test("the schema of a result is published beside that of the stream", async () => {
  await using world = await openWorld();
  const ran = await run(["schema", "result"], { world });
  expect(ran.code).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { status: {}, exit_code: {}, response: {}, git: {}, permission_denials: {} },
    required: expect.arrayContaining(["status", "exit_code", "run_id", "thread_id", "usage", "cost"]),
  });
  expect(await run(["schema", "other"], { world })).toMatchObject({ code: 2 });
});

interface Answer {
  readonly ok: boolean;
  readonly exit_code: number;
  readonly checks: readonly { readonly name: string; readonly state: string; readonly code?: string }[];
}

async function preflight(
  world: World,
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const ran = await run(["exec", "--preflight", "--json", ...flags], { world, env });
  const answer: Answer = JSON.parse(ran.stdout);
  expect(ran.code).toBe(answer.exit_code);
  expect(answer.ok).toBe(ran.code === 0);
  return answer;
}

const failed = ({ checks }: Answer): readonly unknown[] =>
  checks.filter(({ state }) => state === "failed").map(({ name, code }) => [name, code]);

test("a run that could start passes every check, and nothing is written", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", `[{"text":"never"}]`);
  const out = path.join(world.root, "out");
  const flags = ["--artifact-root", out, "--run-id", "job", "--result-json", path.join(world.root, "result.json")];
  const answer = await preflight(world, ["--script", script, ...flags, "--max-cost", "1", "--allow-tool", "bash"]);
  expect(failed(answer)).toEqual([]);
  expect(answer.checks.map(({ name }) => name)).toEqual(
    "options config workspace model key inputs home instructions limits envelope sandbox git".split(" "),
  );
  expect((await readdir(world.root)).toSorted()).toEqual(["script.json", "workspace"]);
  const human = await run(["exec", "--preflight", "--script", script], { world });
  expect(human.stdout).toMatch(/^ok +options +understood\n/);
  expect(human.stdout).toMatch(/\nok +sandbox +(namespaces|bwrap)\n/);
});

test("sources of instructions are listed with their sizes, and a run has the same", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", `[{"text":"yes"}]`);
  await world.file("base.md", "You are terse.");
  await world.file("home/AGENTS.md", "Of the owner.");
  await world.file("workspace/AGENTS.md", "Of the repository.\n");
  const flags = ["--script", script, "-c", "model_instructions_file=../base.md", "-c", "developer_instructions=Über"];
  const guides = [
    { source: path.join(world.home, "AGENTS.md"), bytes: 13 },
    { source: path.join(world.workspace, "AGENTS.md"), bytes: 18 },
  ];
  const sources = [
    { source: "base instructions", bytes: 14 },
    { source: "developer instructions", bytes: 5 },
    ...guides,
  ];
  expect((await preflight(world, flags)).checks.find(({ name }) => name === "instructions")).toMatchObject({ sources });
  const plain = await preflight(world, ["--script", script]);
  expect(plain.checks.find(({ name }) => name === "instructions")).toMatchObject({
    sources: [{ source: "Heddle's own instructions", bytes: expect.any(Number) }, ...guides],
  });
  const ran = await run(["exec", "--json", ...flags, "go"], { world });
  const thread = /"thread_id":"([^"]+)"/.exec(ran.stdout)?.[1] ?? "";
  const shown = await run(["threads", "show", thread], { world });
  expect(shown.stdout).toMatch(/turn\.admitted .*, base instructions 14 bytes, developer instructions 5 bytes\n/);
  expect(shown.stdout).toMatch(/context\.loaded .*home\/AGENTS\.md 13 bytes, .*workspace\/AGENTS\.md 18 bytes\n/);
});

const COSTLY = ["-m", "gpt-unheard-of", "--max-cost", "1"] as const;

for (const [name, flags, env, check, code, exit] of [
  ["a bad option", ["--max-turns", "0"], { OPENAI_API_KEY: "k" }, "options", "usage.invalid", EXIT.usage],
  ["a missing folder", ["-C", "gone"], { OPENAI_API_KEY: "k" }, "workspace", "workspace.missing", EXIT.usage],
  ["a missing key", [], {}, "key", "auth.missing", EXIT.auth],
  ["an unknown provider", ["-c", "model_provider=nobody"], {}, "model", "provider.unknown", EXIT.usage],
  ["a missing image", ["-i", "gone.png"], { OPENAI_API_KEY: "k" }, "inputs", "usage.invalid", EXIT.usage],
  ["an unknown tool", ["--allow-tool", "teleport"], { OPENAI_API_KEY: "k" }, "limits", "usage.invalid", EXIT.usage],
  ["a cost without a price", COSTLY, { OPENAI_API_KEY: "k" }, "limits", "usage.invalid", EXIT.usage],
] as const) {
  test(`preflight finds ${name} and exits as the run would`, async () => {
    await using world = await openWorld();
    const answer = await preflight(world, flags, env);
    expect(failed(answer)).toEqual([[check, code]]);
    expect(answer.exit_code).toBe(exit);
    const real = await run(["exec", ...flags, "go"], { world, env });
    expect(real.code).toBe(exit);
  });
}

test("preflight finds a configuration with a mistake, a folder outside git and a home that cannot be", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", "modle = 1\n");
  expect(failed(await preflight(world, []))).toEqual([["config", "config.invalid"]]);
  await mkdir(path.join(world.root, "bare"));
  const script = await world.file("script.json", `[{"text":"never"}]`);
  await world.file("home/config.toml", "");
  const outside = await preflight(world, ["-C", path.join(world.root, "bare"), "--script", script]);
  expect(failed(outside)).toEqual([["workspace", "workspace.untrusted"]]);
  const homeless = await preflight(world, ["--script", script], { HEDDLE_HOME: path.join(script, "home") });
  expect(failed(homeless)).toEqual([["home", "store.read-only"]]);
});
