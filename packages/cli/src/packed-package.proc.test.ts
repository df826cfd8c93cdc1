import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { startModelServer } from "@heddle/models/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { KEY, pointAt } from "../test/app-server-client.ts";
import { useAsReadmeSays } from "../test/first-use.ts";
import { openWorld, run, start, type World } from "../test/heddle-process.ts";
import { copyExamples, OLD_NODE, packAndInstall, REPOSITORY, type PackedPackage } from "../test/packed-package.ts";
import { BROWSER, MISUSES } from "../test/typed-programs.ts";

let packed: PackedPackage;
let examples: readonly string[];
beforeAll(async () => {
  packed = await packAndInstall();
  examples = await copyExamples(packed.project);
}, 180_000);
afterAll(() => packed[Symbol.asyncDispose]());

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });

test("12.15, 14.12: the package carries its licence and those of others, and nothing but what it needs", async () => {
  const beside = packed.files.filter((file) => !file.startsWith("dist/"));
  expect(beside).toEqual(["LICENSE", "NOTICE", "README.md", "bin/heddle.cjs", "package.json"]);
  const libraries = packed.files.filter((file) => /^dist\/(client|engine|types\/[^/]+\/index)\.(js|d\.ts)$/.test(file));
  expect(libraries).toEqual([
    "dist/client.js",
    "dist/engine.js",
    "dist/types/client/index.d.ts",
    "dist/types/engine/index.d.ts",
  ]);
  // What exec loads cannot grow by what programs import: none of it is in the program's files.
  const program = packed.files.filter((file) => file.endsWith(".cjs"));
  const sources = await Promise.all(program.map((file) => readFile(path.join(packed.installed, file), "utf8")));
  expect(sources.filter((text) => text.includes("heddle/engine"))).toEqual([]);
  const licence = (folder: string): Promise<string> => readFile(path.join(folder, "LICENSE"), "utf8");
  expect(await licence(packed.installed)).toBe(await licence(REPOSITORY));
  // No dependency, so no other folder; nothing of this machine.
  expect(await readdir(path.join(packed.project, "node_modules"))).toEqual([".bin", ".package-lock.json", "heddle"]);
  // A type of another module names it; a method may be called `import`.
  const types = packed.files.filter((file) => file.endsWith(".d.ts"));
  const texts = await Promise.all(types.map((file) => readFile(path.join(packed.installed, file), "utf8")));
  expect(texts.filter((text) => /zod|@heddle\/|import\(\s*["'`]/.test(text) || text.includes(REPOSITORY))).toEqual([]);
});

test("14.12: the bill of materials names what is bundled, and every licence text is there", async () => {
  const read = (file: string): Promise<string> => readFile(path.join(packed.installed, "dist", file), "utf8");
  const bill = JSON.parse(await read("sbom.cdx.json")) as {
    readonly bomFormat: string;
    readonly metadata: { readonly component: { readonly purl: string } };
    readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[];
  };
  const { version } = JSON.parse(await readFile(path.join(packed.installed, "package.json"), "utf8")) as {
    version: string;
  };
  expect(bill).toMatchObject({
    bomFormat: "CycloneDX",
    metadata: { component: { purl: `pkg:npm/heddle@${version}` } },
  });
  const { version: zod } = JSON.parse(
    await readFile(path.join(REPOSITORY, "node_modules", "zod", "package.json"), "utf8"),
  ) as { version: string };
  expect(bill.components.map(({ purl }) => purl)).toContain(`pkg:npm/zod@${zod}`);
  const licences = await read("third-party-licenses.txt");
  for (const component of bill.components) expect(licences).toContain(`${component.name} ${component.version} (`);
  expect(licences).not.toContain("brings no text");
});

test("14.12: the program of the installed package runs", async () => {
  await using world = await openWorld();
  const { launcher } = packed;
  await using model = await startModelServer({ script: [{ text: "hello there" }] });
  await pointAt(world, model.url);
  expect(await run(["exec", "say hello"], { world, launcher, env: KEY })).toMatchObject({
    code: 0,
    stdout: "hello there\n",
  });
  const npx = await packed.npm(["exec", "--offline", "--", "heddle", "--version"], packed.project);
  expect(npx).toMatch(/\d+\.\d+\.\d+/);
});

test(
  "14: README's first use, typed in a fresh project, leads from the packed package to a verified task",
  { timeout: 240_000 },
  async () => {
    const printed = await useAsReadmeSays(packed);
    expect([...printed.keys()]).toHaveLength(8);
    expect(printed.get("heddle threads list")).toContain("which test fails");
    expect(printed.get("heddle task lint heddle-task.yaml --run")).toContain(
      "FAILED tests npm test: 0 passed, 1 failed",
    );
    expect(printed.get("heddle task run heddle-task.yaml")).toContain("VERIFIED: every check passed");
    expect(printed.get('heddle task diff "fix the failing test"')).toContain("+exports.sum = (a, b) => a + b;");
  },
);

const testOld = test.runIf(OLD_NODE !== undefined);

testOld(
  "14.12: on an older Node program and engine say what they need, and HEDDLE_NODE helps (needs Node 20 or 22)",
  async () => {
    await using world = await openWorld();
    const old = { world, launcher: packed.launcher, node: OLD_NODE ?? "" };
    const refused = await run(["--version"], old);
    expect(refused).toMatchObject({ code: 8, stdout: "" });
    expect(refused.stderr).toMatch(/^heddle: Node 24\.19 or newer is needed, this is v[^\n]+HEDDLE_NODE[^\n]+\n$/);
    expect(await run(["--version"], { ...old, env: { HEDDLE_NODE: process.execPath } })).toMatchObject({ code: 0 });
    const program = `import { openHeddle } from "heddle/engine"; await openHeddle().catch(({ code, message }) => console.log(code, message));`;
    await writeFile(path.join(packed.project, "old.mjs"), program);
    const engine = spawnSync(OLD_NODE ?? "", ["old.mjs"], { cwd: packed.project, encoding: "utf8", env: world.env });
    expect(engine).toMatchObject({ status: 0, stderr: "" });
    expect(engine.stdout).toMatch(/^usage\.invalid heddle\/engine needs Node 24\.19 or newer, this is v/);
  },
);

// ---- types

const STRICT = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  target: "es2022",
};
const NODE_TYPES = { types: ["node"], typeRoots: [path.join(REPOSITORY, "node_modules", "@types")] };

async function compile(name: string, compilerOptions: object, files: readonly string[]): Promise<string> {
  const file = path.join(packed.project, `tsconfig.${name}.json`);
  await writeFile(file, JSON.stringify({ compilerOptions: { ...STRICT, ...compilerOptions }, files }));
  const tsc = path.join(REPOSITORY, "node_modules", ".bin", "tsc");
  return (await promisify(execFile)(tsc, ["-p", file]).catch((error: { stdout: string }) => error)).stdout;
}

test("14.12: the examples compile against the installed types as Node and as bundlers resolve them", async () => {
  await writeFile(path.join(packed.project, "misuse.ts"), MISUSES);
  await writeFile(path.join(packed.project, "browser.ts"), BROWSER);
  const programs = [...examples, "misuse.ts"];
  const bundled = { module: "esnext", moduleResolution: "bundler", noEmit: true };
  const [nodenext, bundler, browser] = await Promise.all([
    compile("nodenext", { ...NODE_TYPES, module: "nodenext", noEmit: true }, programs),
    compile("bundler", { ...NODE_TYPES, ...bundled }, programs),
    compile("browser", { types: [], lib: ["es2022", "dom", "dom.asynciterable"], ...bundled }, ["browser.ts"]),
  ]);
  expect({ nodenext, bundler, browser }).toEqual({ nodenext: "", bundler: "", browser: "" });
});

test("14.12: the client is one file that imports nothing, so a browser can load it as it is", async () => {
  const text = await readFile(path.join(packed.installed, "dist", "client.js"), "utf8");
  expect(text.match(/\bimport\b[^;]*from|\brequire\(|\bprocess\.|\bBuffer\b/g)).toBeNull();
});

// ---- examples

async function serveWith(world: World, launcher: string) {
  const running = start(["serve"], { world, launcher, env: KEY });
  await running.sees("token    ");
  return running;
}

test(`14.12: the client example runs a turn of a server (on ${OLD_NODE === undefined ? "this Node" : "an older Node"})`, async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [shell("echo hi"), { text: "it is a loom" }] });
  await pointAt(world, model.url);
  await using _server = await serveWith(world, packed.launcher);
  // As a build would write it: an older Node does not strip types.
  await compile("build", { ...NODE_TYPES, noCheck: true, module: "nodenext", outDir: "built" }, ["client.ts"]);
  const program = path.join(packed.project, "built", "client.js");
  const node = OLD_NODE ?? process.execPath;
  const ran = await run(["what is it?"], { world, launcher: program, node });
  expect(ran).toMatchObject({ code: 0, stdout: "it is a loom\n" });
  expect(ran.stderr).toMatch(/^\$ .*echo hi.*\ncompleted, \d+ tokens, thread [0-9a-f-]{36}\n$/);
});

test("14.12: the session example works in its envelope, is refused outside of it, and comes back to its session", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [] });
  await pointAt(world, model.url);
  await using _server = await serveWith(world, packed.launcher);
  const launcher = path.join(packed.project, "envelope-session.mjs");
  await writeFile(launcher, await readFile(path.join(REPOSITORY, "examples", "envelope-session.mjs"), "utf8"));
  const ran = await run([], { world, launcher, withinMs: 60_000 });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const [, threadId = ""] = /^left; prove it with: heddle verify ([0-9a-f-]{36})\n$/.exec(ran.stdout) ?? [];
  expect(await readFile(path.join(world.workspace, "cloth.txt"), "utf8")).toBe("woven\n");
  expect(await run(["verify", threadId], { world, launcher: packed.launcher })).toMatchObject({ code: 0 });
});

test("14.12: the engine example runs two turns in its own process, and declines what it is asked", async () => {
  await using world = await openWorld();
  const outside = {
    calls: [
      {
        tool: "exec_command",
        args: { cmd: "echo hi > x", sandbox_permissions: "require_escalated", justification: "to write" },
      },
    ],
  };
  await using model = await startModelServer({ script: [outside, { text: "it is a loom" }, { text: "a loom" }] });
  await pointAt(world, model.url);
  // As a user types it: the source itself, with the types stripped by Node.
  const ran = await run(["what is it?"], { world, launcher: path.join(packed.project, "engine.ts"), env: KEY });
  expect(ran).toMatchObject({ code: 0, stdout: "it is a looma loom\n" });
  expect(ran.stderr).toMatch(/\? command: declined\n(.*\n)*completed, \d+ tokens, thread [0-9a-f-]{36}\n$/);
  const bad = await run(["go"], { world, launcher: path.join(packed.project, "engine.ts") });
  expect(bad).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^auth\.missing: .*MOCK_KEY/) });
});

test.each([
  ["docs/build/engine.md", "engine.ts"],
  ["docs/build/client.md", "client.ts"],
])("14.12: %s shows examples/%s as it is", async (page, example) => {
  const text = await readFile(path.join(REPOSITORY, "examples", example), "utf8");
  expect(await readFile(path.join(REPOSITORY, page), "utf8")).toContain(`\`\`\`ts\n${text}\`\`\`\n`);
});

// ---- container, action, release

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Ran {
  readonly code: number;
  readonly output: string;
}

const readRoot = (file: string): Promise<string> => readFile(path.join(REPOSITORY, file), "utf8");

/** As `shell: bash` of a workflow runs it. */
function bash(script: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Ran> {
  return new Promise((resolve) => {
    const args = ["--noprofile", "--norc", "-eo", "pipefail", "-c", script];
    execFile("bash", args, { cwd, env, encoding: "utf8" }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1,
        output: stdout + stderr,
      });
    });
  });
}

/** Where `npm install --global` installs, and what finds it: the same for all, so that it is done once. */
async function globalPrefix(world: World) {
  const prefix = path.join(packed.project, "..", "global");
  await mkdir(path.join(prefix, "lib"), { recursive: true });
  const PATH = [path.join(prefix, "bin"), path.dirname(process.execPath), world.env["PATH"]].join(path.delimiter);
  return { ...world.env, PATH, npm_config_prefix: prefix, npm_config_offline: "true" };
}

async function runAction(world: World, inputs: Readonly<Record<string, string>>) {
  const action = parse(await readRoot("action.yml")) as {
    readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
    readonly runs: { readonly using: string; readonly steps: readonly Step[] };
  };
  expect(action.runs.using).toBe("composite");
  const runner = path.join(world.root, "runner");
  await mkdir(runner, { recursive: true });
  const [output, summary] = ["output", "summary"].map((name) => path.join(runner, name));
  for (const file of [output, summary]) await writeFile(file ?? "", "");
  const given: Record<string, string> = { ...inputs, package: packed.tarball };
  const valueOf = (text: string): string =>
    text.replaceAll(
      /\$\{\{ inputs\.([\w-]+) \}\}/g,
      (_, name: string) => given[name] ?? action.inputs[name]?.default ?? "?",
    );
  const base = {
    ...(await globalPrefix(world)),
    ...KEY,
    RUNNER_TEMP: runner,
    GITHUB_OUTPUT: output ?? "",
    GITHUB_STEP_SUMMARY: summary ?? "",
  };
  let last: Ran = { code: 0, output: "" };
  for (const step of action.runs.steps) {
    if (step.run === undefined || last.code !== 0) continue;
    if (step.run.startsWith("npm install") && existsSync(path.join(base.npm_config_prefix, "bin", "heddle"))) continue;
    expect(step.run).not.toContain("${{");
    const env = Object.fromEntries(Object.entries(step.env ?? {}).map(([name, text]) => [name, valueOf(text)]));
    last = await bash(step.run, world.workspace, { ...base, ...env });
  }
  const uploads = action.runs.steps.filter(({ uses }) => uses?.startsWith("actions/upload-artifact@"));
  expect(uploads).toMatchObject([{ if: "always()" }]);
  const report = path.join(runner, "heddle-report");
  return {
    ...last,
    report,
    files: await readdir(report),
    outputs: await readFile(output ?? "", "utf8"),
    summary: await readFile(summary ?? "", "utf8"),
  };
}

const overrides = (url: string): string =>
  [
    "model=gpt-5.5",
    "model_provider=mock",
    `model_providers.mock.base_url="${url}/v1"`,
    "model_providers.mock.env_key=MOCK_KEY",
  ]
    .flatMap((word) => ["-c", word])
    .join("\n");

test("14.12: the action runs a prompt and leaves a report, also of a run that fails", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "it is a loom" }) });
  // Text that would do something if it were part of the script.
  const prompt = 'what is "$(touch made)" `touch made`?';
  const ran = await runAction(world, { prompt, arguments: overrides(model.url) });
  expect(ran).toMatchObject({ code: 0, summary: "it is a loom" });
  expect(ran.outputs).toBe(`report=${ran.report}\nexit-code=0\n`);
  expect(ran.files.toSorted()).toEqual(["answer.md", "events.jsonl", "prompt.md", "result.json", "run"]);
  expect(await readdir(world.workspace)).toEqual([".git"]);
  expect(JSON.stringify(model.requests[0]?.body)).toContain(JSON.stringify(prompt).slice(1, -1).replaceAll("\\", "\\"));
  await using other = await openWorld();
  const failed = await runAction(other, { prompt: "go", arguments: "-c\nmodel_provider=nobody" });
  expect(failed).toMatchObject({ code: 2, outputs: expect.stringContaining("exit-code=2\n") });
  expect(failed.files).toContain("result.json");
  const both = await runAction(other, { prompt: "go", task: "task.yaml" });
  expect(both).toMatchObject({ code: 2, output: expect.stringContaining("::error::") });
});

test("14.12: the action runs a task, and its report can be judged again elsewhere", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: async ({ answers }) => (answers === 0 ? shell("echo hello > NOTES.md") : { text: "done" }),
  });
  await world.file("workspace/task.yaml", "goal: write NOTES.md\nworkspace: .\nchecks:\n  - file-exists: NOTES.md\n");
  const ran = await runAction(world, { task: "task.yaml", arguments: overrides(model.url) });
  expect(ran).toMatchObject({ code: 0, summary: expect.stringContaining("verified") });
  const bundle = ran.files.find((file) => file.endsWith(".bundle"));
  await using elsewhere = await openWorld();
  const args = ["task", "verify", "--bundle", path.join(ran.report, bundle ?? "no bundle")];
  expect(await run(args, { world: elsewhere, launcher: packed.launcher })).toMatchObject({ code: 0 });
});

test("14.12: the container recipe installs the package alone, and its entry point runs", async () => {
  await using world = await openWorld();
  const text = (await readRoot("Containerfile")).replaceAll(/\\\n/g, " ");
  const of = (word: string): string[] =>
    [...text.matchAll(new RegExp(`^${word} (.*)$`, "gm"))].map(([, rest = ""]) => rest);
  expect(of("FROM")).toEqual(["${NODE_IMAGE}"]);
  expect(of("ARG")).toEqual(["NODE_IMAGE=node:24-bookworm", "HEDDLE=heddle"]);
  expect([of("COPY"), of("ADD")]).toEqual([[], []]);
  const env = { ...(await globalPrefix(world)), HEDDLE: packed.tarball };
  await rm(env.npm_config_prefix, { recursive: true });
  for (const script of of("RUN")) expect(await bash(script, world.root, env)).toMatchObject({ code: 0 });
  const [entry = ""] = JSON.parse(of("ENTRYPOINT")[0] ?? "[]") as string[];
  const ran = await bash(`${entry} ${(JSON.parse(of("CMD")[0] ?? "[]") as string[]).join(" ")}`, world.root, env);
  expect(ran).toMatchObject({ code: 0, output: expect.stringContaining("Usage: heddle COMMAND") });
});

test("14.12: the release publishes the packed file with provenance, by the identity of its workflow", async () => {
  const text = await readRoot(".github/workflows/release.yml");
  const { permissions, jobs } = parse(text) as {
    readonly permissions: object;
    readonly jobs: { readonly publish: { readonly permissions: object; readonly steps: readonly Step[] } };
  };
  expect(permissions).toEqual({ contents: "read" });
  expect(jobs.publish.permissions).toEqual({ contents: "read", "id-token": "write" });
  const { steps } = jobs.publish;
  expect(steps.at(-1)?.run).toBe("npm publish ./release/heddle-*.tgz --provenance --access public");
  const order = ["npm ci --ignore-scripts", "npm run check", "npm pack --workspace packages/cli", "npm publish"];
  const at = order.map((words) => steps.findIndex((step) => step.run?.includes(words)));
  expect(at).toEqual(at.toSorted((a, b) => a - b));
  expect(at).not.toContain(-1);
  expect(text).not.toMatch(/https?:|secrets\.|registry-url/);
  for (const { run: script } of steps) expect(script ?? "").not.toContain("${{");
});
