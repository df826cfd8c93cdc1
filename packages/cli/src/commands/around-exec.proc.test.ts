import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { codexExecSchema } from "@heddle/dialects/exec-schema";
import { describe, expect, test } from "vitest";
import { openWorld, run } from "../../test/heddle-process.ts";

describe("heddle config", () => {
  test("reads and changes one key of its own file, keeping comments, private and whole", async () => {
    await using world = await openWorld();
    const file = path.join(world.home, "config.toml");
    expect((await run(["config", "path"], { world })).stdout).toBe(`${file}\n`);
    expect(await run(["config", "get", "model"], { world })).toMatchObject({ code: 1, stdout: "" });
    expect(await run(["config", "set", "model", "gpt-5.5"], { world })).toMatchObject({ code: 0, stderr: "" });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await world.file("home/config.toml", `# mine\n${await readFile(file, "utf8")}`);
    const project = `projects."${world.workspace}".trust_level`;
    for (const [key, value] of [
      ["sandbox_workspace_write.network_access", "true"],
      ["model_providers.local.base_url", "http://127.0.0.1:1/v1"],
      [project, "trusted"],
      ["model", `"gpt-5"`],
    ] as const) {
      expect(await run(["config", "set", key, value], { world })).toMatchObject({ code: 0, stderr: "" });
    }
    expect(await readFile(file, "utf8")).toBe(
      `# mine\nmodel = "gpt-5"\n\n[sandbox_workspace_write]\nnetwork_access = true\n\n[model_providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n\n[projects."${world.workspace}"]\ntrust_level = "trusted"\n`,
    );
    expect((await run(["config", "get", "model_providers.local"], { world })).stdout).toBe(
      `base_url = "http://127.0.0.1:1/v1"\n`,
    );
    expect((await run(["config", "list"], { world })).stdout).toContain(
      "sandbox_workspace_write.network_access = true\n",
    );
    expect(await run(["config", "unset", "model"], { world })).toMatchObject({ code: 0 });
    expect(JSON.parse((await run(["config", "list", "--json"], { world })).stdout)).not.toHaveProperty("model");
    expect(await readdir(world.home)).toEqual(["cache", "config.toml"]);
  });

  test("refuses what would make the file wrong, and leaves it as it was", async () => {
    await using world = await openWorld();
    const text = `model = "a" # mine\n`;
    const file = await world.file("home/config.toml", text);
    for (const [args, why] of [
      [["set", "sandbox_mode", "open"], /must be one of read-only/],
      [["set", "modle", "x"], /^heddle: config set modle: unknown key "modle"; did you mean "model"\?/],
      [["set", "model_providers.x.env_key", "K"], /has no address/],
      [["set", "model"], /write heddle config/],
      [["gte", "model"], /did you mean "get"/],
    ] as const) {
      expect(await run(["config", ...args], { world })).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
    }
    expect(await readFile(file, "utf8")).toBe(text);
    await world.file("home/config.toml", `modle = 1\n`);
    expect(await run(["config", "set", "model", "x"], { world })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/config\.toml:1: unknown key "modle"/),
    });
  });

  test("says when a file of its own puts Codex's out of force", async () => {
    await using world = await openWorld();
    const codex = await world.file("codex/config.toml", `model = "from-codex"\n`);
    expect((await run(["config", "get", "model"], { world })).stdout).toBe("from-codex\n");
    const set = await run(["config", "set", "model", "mine"], { world });
    expect(set).toMatchObject({ code: 0, stderr: expect.stringContaining(`${codex} is no longer read`) });
  });
});

test("heddle schema exec prints the schema the lines are made of", async () => {
  await using world = await openWorld();
  const ran = await run(["schema", "exec"], { world });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const schema: { readonly $schema?: string } = JSON.parse(ran.stdout);
  expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
  expect(schema).toEqual(JSON.parse(JSON.stringify(codexExecSchema())));
  expect(await run(["schema", "none"], { world })).toMatchObject({ code: 2 });
});

describe("heddle completions", () => {
  test("for bash offer commands, options, choices and files", async () => {
    await using world = await openWorld();
    await mkdir(path.join(world.workspace, "folder-a"));
    const script = await run(["completions", "bash"], { world });
    const offer = (...words: readonly string[]): readonly string[] => {
      const quoted = words.map((word) => `'${word}'`).join(" ");
      const program = `${script.stdout}\nCOMP_WORDS=(heddle ${quoted}); COMP_CWORD=${words.length}; _heddle; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return execFileSync("bash", ["-c", program], { cwd: world.workspace, encoding: "utf8" }).trimEnd().split("\n");
    };
    expect(offer("ex")).toEqual(["exec"]);
    expect(offer("exec", "--out")).toEqual(["--output-last-message", "--output-schema"]);
    expect(offer("exec", "-s", "work")).toEqual(["workspace-write"]);
    expect(offer("exec", "-C", "fold")).toEqual(["folder-a"]);
    expect(offer("exec", "res")).toEqual(["resume"]);
    expect(offer("threads", "de")).toEqual(["delete"]);
  });

  test("for zsh and fish name every command and option that help shows, and none that it hides", async () => {
    await using world = await openWorld();
    for (const shell of ["zsh", "fish"] as const) {
      const { stdout, code } = await run(["completions", shell], { world });
      expect(code).toBe(0);
      for (const word of ["exec", "threads", "verify", "doctor", "config", "output-schema", "deltas", "uncommitted"]) {
        expect(stdout).toContain(word);
      }
      expect(stdout).not.toContain("cyber-access-program");
      // Quotes that are open at the end would break the shell that loads this.
      expect((stdout.replaceAll(`'\\''`, "").match(/'/g) ?? []).length % 2).toBe(0);
    }
    expect(await run(["completions", "tcsh"], { world })).toMatchObject({ code: 2 });
  });

  for (const shell of ["zsh", "fish"] as const) {
    test.runIf(hasProgram(shell))(
      `for ${shell} are read by ${shell} without complaint (where it is installed)`,
      async () => {
        await using world = await openWorld();
        const file = await world.file(`heddle.${shell}`, (await run(["completions", shell], { world })).stdout);
        expect(execFileSync(shell, ["-n", file], { encoding: "utf8" })).toBe("");
      },
    );
  }
});

function hasProgram(name: string): boolean {
  try {
    execFileSync(name, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("doctor tells what the kernel holds (12.7), and with --online which providers answer, refuse the key or are not there", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [] });
  await world.file(
    "home/config.toml",
    `[model_providers.up]\nbase_url = "${server.url}/v1"\n[model_providers.down]\nbase_url = "http://127.0.0.1:1/v1"\n`,
  );
  const ran = await run(["doctor", "--online", "--json"], { world });
  const findings = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line): { name: string; state: string; detail: string } => JSON.parse(line));
  const of = (name: string): unknown => findings.find((finding) => finding.name === `provider ${name}`);
  expect(of("up")).toMatchObject({ state: "ok", detail: expect.stringContaining("answers in") });
  expect(of("down")).toMatchObject({ state: "problem", detail: expect.stringContaining("does not respond") });
  expect(of("ollama")).toMatchObject({ state: "absent" });
  const kernel = findings.filter(({ name }) => name === "system call filter" || name === "landlock");
  expect(kernel.map(({ state }) => state)).toEqual([
    expect.stringMatching(/ok|absent/),
    expect.stringMatching(/ok|absent/),
  ]);
  expect(ran.code).toBe(1);
});
