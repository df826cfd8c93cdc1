/**
 * `acpx`, a headless client of the Agent Client Protocol, unchanged, in front of `heddle acp`: a prompt, a tool, permissions,
 * a session that is loaded again, a mode, a cancel. What Heddle puts on the wire is held to the schema of the protocol.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { command, configured, patch, say } from "./exec-case.ts";
import { at } from "./app-server-client.ts";
import { heddle } from "./program.ts";
import { openClientWorld, type ClientWorld } from "./sdk-world.ts";

const PACKAGES = path.join(import.meta.dirname, "node_modules");
const ACPX = path.join(PACKAGES, "acpx", "dist", "cli.js");
const SCHEMA = path.join(PACKAGES, "@agentclientprotocol", "sdk", "schema", "v1", "schema.unstable.json");
const CONFIG = configured(`approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n`);

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
}

function start({ fixture }: ClientWorld, args: readonly string[]) {
  const agent = [process.execPath, heddle.file, "acp"].join(" ");
  const child = spawn(process.execPath, [ACPX, "--agent", agent, "--cwd", fixture.workspace, ...args], {
    cwd: fixture.workspace,
    env: fixture.env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let stdout = "";
  let seen = Promise.withResolvers<void>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    seen.resolve();
    seen = Promise.withResolvers();
  });
  const ended = once(child, "close").then(([code]): Ran => ({ code, stdout }));
  return {
    ended,
    async sees(words: string): Promise<void> {
      const over = ended.then(() => true);
      while (!stdout.includes(words)) {
        if ((await Promise.race([seen.promise, over])) === true)
          throw new Error(`it ended without ${words}: ${stdout}`);
      }
    },
  };
}

function acpx(world: ClientWorld, ...args: readonly string[]): Promise<Ran> {
  return start(world, args).ended;
}

describe("acpx over heddle", () => {
  test("a prompt with a tool and a patch, every message by the schema of the protocol", async () => {
    const script = [
      command("echo made > made.txt; echo one"),
      patch("*** Add File: new.txt", "+hello"),
      say("All done."),
    ];
    await using world = await openClientWorld(heddle, { script, config: CONFIG });
    const { code, stdout } = await acpx(world, "--approve-all", "--format", "json", "exec", "do it");
    expect(code).toBe(0);
    expect(await readFile(path.join(world.fixture.workspace, "made.txt"), "utf8")).toBe("made\n");
    expect(await readFile(path.join(world.fixture.workspace, "new.txt"), "utf8")).toBe("hello\n");
    const messages = stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    const kinds = messages.flatMap(({ params }) => params?.update?.sessionUpdate ?? []);
    expect(kinds).toEqual(
      expect.arrayContaining(["tool_call", "tool_call_update", "agent_message_chunk", "usage_update"]),
    );
    expect(problems(messages)).toEqual([]);
  });

  test("what is denied does not happen, and the model continues", async () => {
    await using world = await openClientWorld(heddle, {
      script: [command("touch never"), say("Then not.")],
      config: CONFIG,
    });
    const { stdout } = await acpx(world, "--deny-all", "exec", "do it");
    expect(stdout).toContain("(failed)");
    expect(stdout).toContain("Then not.");
    await expect(stat(path.join(world.fixture.workspace, "never"))).rejects.toThrow();
  });

  test("a session that one process of the agent began is resumed by another, changes its mode, and knows what was said", async () => {
    await using world = await openClientWorld(heddle, { script: [say("First."), say("Second.")], config: CONFIG });
    expect((await acpx(world, "sessions", "new")).code).toBe(0);
    expect(await acpx(world, "prompt", "remember this")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/session\/(resume|load)[^]*First\./),
    });
    expect((await acpx(world, "set-mode", "explore")).stdout).toContain("mode set: explore");
    expect((await acpx(world, "prompt", "and now")).stdout).toContain("Second.");
    expect(world.request(1).prompts.join("\n")).toContain("remember this");
    expect((await acpx(world, "sessions", "close")).code).toBe(0);
  });

  test("a cancel ends the command and the prompt", async () => {
    await using world = await openClientWorld(heddle, { script: [command("sleep 40"), say("Never.")], config: CONFIG });
    await acpx(world, "sessions", "new");
    const prompting = start(world, ["--approve-all", "prompt", "a long one"]);
    await prompting.sees("session/request_permission");
    expect((await acpx(world, "cancel")).stdout).toContain("cancel requested");
    const { stdout } = await prompting.ended;
    expect(stdout).toContain("cancelled");
    expect(stdout).not.toContain("Never.");
    await acpx(world, "sessions", "close");
  });
});

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
}

const RESULTS: Readonly<Record<string, string>> = {
  initialize: "InitializeResponse",
  "session/new": "NewSessionResponse",
  "session/prompt": "PromptResponse",
};
const PARAMS: Readonly<Record<string, string>> = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
};

/** As much of Ajv as is needed: types of what may not be installed cannot be imported. */
interface Validator {
  addSchema(schema: unknown, key: string): void;
  getSchema(key: string): { (value: unknown): unknown; readonly errors?: readonly unknown[] | null } | undefined;
  errorsText(errors: readonly unknown[] | null | undefined): string;
}

/** What of Heddle's messages is not as the schema of the protocol says. */
function problems(messages: readonly Message[]): readonly string[] {
  const { Ajv2020 }: { Ajv2020: new (options: object) => Validator } = createRequire(import.meta.url)(
    "ajv/dist/2020.js",
  );
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(JSON.parse(readFileSync(SCHEMA, "utf8")), "acp");
  const found: string[] = [];
  const check = (name: string | undefined, value: unknown): void => {
    if (name === undefined || value === undefined) return;
    const isValid = ajv.getSchema(`acp#/$defs/${name}`);
    if (isValid === undefined) throw new Error(`the schema has no ${name}`);
    if (isValid(value) !== true) found.push(`${name}: ${ajv.errorsText(isValid.errors)} in ${JSON.stringify(value)}`);
  };
  const asked = new Map<unknown, string>();
  for (const { id, method, params, result } of messages) {
    if (method !== undefined) check(PARAMS[method], params);
    if (method !== undefined && method in RESULTS) asked.set(id, method);
    // Ids of both sides are numbers from 0 or 1 on: an answer of the client is told by what is in it.
    else if (method === undefined && at(result, "outcome") === undefined) check(RESULTS[asked.get(id) ?? ""], result);
  }
  return found;
}
