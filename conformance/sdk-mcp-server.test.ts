/**
 * `codex-mcp-server`, unchanged: it runs the program that is called `codex` on its path and reads what that prints for
 * people. Every expectation is held against Codex first, then against Heddle.
 */
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, test } from "vitest";
import { ECHO_CONFIG, ECHO_SERVER } from "./app-server/scenarios/mcp.ts";
import { command, say } from "./exec-case.ts";
import { codex, heddle, type Program } from "./program.ts";
import { openClientWorld, type ClientWorld, type ClientWorldOptions } from "./sdk-world.ts";

const SERVER = path.join(import.meta.dirname, "node_modules", "codex-mcp-server", "dist", "index.js");

interface ServerWorld extends ClientWorld {
  /** The text of a tool's answer. */
  call(name: string, args: Record<string, unknown>): Promise<string>;
}

async function openServerWorld(program: Program, options: ClientWorldOptions = {}): Promise<ServerWorld> {
  const files = { ...options.files, "bin/codex": `#!/bin/sh\nexec "${program.file}" "$@"\n` };
  const setUp = [`chmod +x ../bin/codex`, ...(options.setUp === undefined ? [] : [options.setUp])].join("\n");
  const world = await openClientWorld(program, { ...options, files, setUp });
  const { env, workspace, root } = world.fixture;
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [SERVER],
    cwd: workspace,
    env: { ...env, PATH: `${path.join(root, "bin")}:${env["PATH"] ?? ""}` },
    stderr: "ignore",
  });
  const client = new Client({ name: "conformance", version: "1.0.0" });
  await client.connect(transport);
  return {
    ...world,
    async call(name, args) {
      const { content } = await client.callTool({ name, arguments: { workingDirectory: workspace, ...args } });
      return Array.isArray(content) ? content.map((part) => String(part.text ?? "")).join("") : "";
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await world[Symbol.asyncDispose]();
    },
  };
}

const MODEL = "gpt-5.5";

describe.each([codex(), heddle])("codex-mcp-server over $name", (program) => {
  test("a prompt is answered", async () => {
    await using world = await openServerWorld(program);
    expect((await world.call("codex", { prompt: "do it", model: MODEL })).trim()).toBe("Hello.");
    expect(world.request(0)).toMatchObject({ model: MODEL });
    expect(world.request(0).prompts.at(-1)).toBe("do it");
  });

  test("a session goes on with the thread whose id was printed", async () => {
    await using world = await openServerWorld(program);
    await world.call("codex", { prompt: "first", sessionId: "s", model: MODEL });
    expect((await world.call("codex", { prompt: "second", sessionId: "s", model: MODEL })).trim()).toBe("Again.");
    expect(world.request(1).prompts.slice(-2)).toEqual(["first", "second"]);
    expect(await world.call("listSessions", {})).toContain('"turnCount": 2');
  });

  test("effort and sandbox are those that were asked for", async () => {
    const script = [command("echo x > made.txt; sleep 0.3"), say("Done.")];
    await using world = await openServerWorld(program, { script });
    const asked = { prompt: "do it", model: MODEL, reasoningEffort: "high", sandbox: "workspace-write" };
    expect((await world.call("codex", asked)).trim()).toBe("Done.");
    expect(world.request(0).effort).toBe("high");
    expect(await world.fixture.look("ws/made.txt")).toBe("x\n");
  });

  test("words in any script reach the model and come back", async () => {
    const words = "漢字とかな。Кириллица, العربية 🙂";
    await using world = await openServerWorld(program, { script: [say(words)] });
    expect((await world.call("codex", { prompt: words, model: MODEL })).trim()).toBe(words);
    expect(world.request(0).prompts.at(-1)).toBe(words);
  });

  test("instructions and MCP servers of the configuration are used", async () => {
    const call = { calls: [{ tool: "mcp__echo__echo", args: { text: "你好" } }] };
    await using world = await openServerWorld(program, {
      script: [call, say("Done.")],
      config: `developer_instructions = "Answer like a pirate."\n${ECHO_CONFIG.replace("prompt", "approve")}`,
      files: { "echo.mjs": ECHO_SERVER },
    });
    expect((await world.call("codex", { prompt: "do it", model: MODEL })).trim()).toBe("Done.");
    expect(world.request(0).told).toContain("Answer like a pirate.");
    expect(world.request(1).outputs.join()).toContain("你好");
  });

  test("a review of what is not committed", async () => {
    await using world = await openServerWorld(program, { script: [say("It is fine.")], setUp: "echo x > new.txt" });
    expect(await world.call("review", { uncommitted: true, model: MODEL })).toContain("It is fine.");
  });

  test("a search of the web is a prompt with --search", async () => {
    await using world = await openServerWorld(program);
    expect(await world.call("websearch", { query: "Heddle" })).toContain("Hello.");
    expect(world.request(0).prompts.at(-1)).toContain("Heddle");
  });

  test("a turn that fails is told", async () => {
    const body = { error: { message: "no such thing" } };
    await using world = await openServerWorld(program, { faults: () => ({ kind: "status", status: 400, body }) });
    expect(await world.call("codex", { prompt: "do it", model: MODEL })).toContain("no such thing");
  });

  test("help is that of the program", async () => {
    await using world = await openServerWorld(program);
    expect(await world.call("help", {})).toContain("exec");
  });
});
