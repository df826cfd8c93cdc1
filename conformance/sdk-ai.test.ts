/**
 * The AI SDK with its two providers for Codex, unchanged: `ai-sdk-provider-codex-cli`, which runs `exec` or `app-server`, and
 * `ai-sdk-provider-codex-app-server`. Every expectation is held against Codex first, then against Heddle.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { generateText, Output, streamText, type LanguageModel } from "ai";
import * as appServerProvider from "ai-sdk-provider-codex-app-server";
import * as cliProvider from "ai-sdk-provider-codex-cli";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ECHO_SERVER } from "./app-server/scenarios/mcp.ts";
import { command, patch, say } from "./exec-case.ts";
import { codex, heddle, type Program } from "./program.ts";
import { openClientWorld, type ClientWorld } from "./sdk-world.ts";

interface Settings {
  readonly sandboxMode?: "read-only" | "workspace-write";
  readonly reasoningEffort?: "low" | "high";
  readonly mcpServers?: Record<string, { transport: "stdio"; command: string; args: string[] }>;
  readonly configOverrides?: Record<string, string | number | boolean>;
}

interface Client extends AsyncDisposable {
  model(settings?: Settings): LanguageModel;
}

interface Kind {
  readonly name: string;
  /** What it says of a turn that fails; undefined: nothing but its text. */
  readonly failure: RegExp | undefined;
  readonly hasUsage: boolean;
  /** It hears of a text as it grows. */
  readonly hasDeltas: boolean;
  readonly open: (program: Program, world: ClientWorld) => Client;
}

const MODEL = "gpt-5.5";
const KINDS: readonly Kind[] = [
  {
    name: "ai-sdk-provider-codex-cli",
    failure: /^Codex CLI exited with code \d+$/,
    hasUsage: true,
    hasDeltas: false,
    open: (program, { fixture }) => {
      const defaultSettings = { codexPath: program.file, cwd: fixture.workspace, env: { ...fixture.env } };
      const provider = cliProvider.createCodexExec({ defaultSettings });
      return { model: (settings = {}) => provider(MODEL, settings), [Symbol.asyncDispose]: async () => undefined };
    },
  },
  {
    name: "ai-sdk-provider-codex-cli with app-server",
    failure: /no such thing/,
    hasUsage: true,
    hasDeltas: true,
    open: (program, { fixture }) => {
      const defaultSettings = { codexPath: program.file, cwd: fixture.workspace, env: { ...fixture.env } };
      const provider = cliProvider.createCodexAppServer({ defaultSettings });
      return {
        model: ({ sandboxMode, reasoningEffort, ...settings } = {}) =>
          provider(MODEL, {
            ...settings,
            autoApprove: true,
            ...(sandboxMode === undefined ? {} : { sandboxPolicy: sandboxMode }),
            ...(reasoningEffort === undefined ? {} : { effort: reasoningEffort }),
          }),
        [Symbol.asyncDispose]: () => provider.close(),
      };
    },
  },
  {
    name: "ai-sdk-provider-codex-app-server",
    failure: undefined,
    hasUsage: false,
    hasDeltas: true,
    open: (program, { fixture }) => {
      const defaultSettings = { codexPath: program.file, cwd: fixture.workspace, env: { ...fixture.env } };
      const provider = appServerProvider.createCodexAppServer({ defaultSettings });
      return { model: (settings = {}) => provider(MODEL, settings), [Symbol.asyncDispose]: async () => undefined };
    },
  },
];

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SCRIPTS = "漢字かな交じり文。Кириллица, العربية, עברית, हिन्दी 🙂";

const BOTH = KINDS.flatMap((kind) => [codex(), heddle].map((program) => ({ ...kind, program })));

// Not `each`, which would cut their names.
for (const { name, open, program, failure, hasUsage, hasDeltas } of BOTH) {
  describe(`${name} over ${program.name}`, () => {
    test("a text with its usage", async () => {
      await using world = await openClientWorld(program);
      await using client = open(program, world);
      const { text, finishReason, usage } = await generateText({ model: client.model(), prompt: "do it" });
      expect({ text, finishReason }).toEqual({ text: "Hello.", finishReason: "stop" });
      if (hasUsage) expect(usage).toMatchObject({ inputTokens: 100, outputTokens: 20, totalTokens: 120 });
      expect(world.request(0)).toMatchObject({ model: MODEL });
      expect(world.request(0).prompts.at(-1)).toContain("do it");
    });

    test("a system prompt reaches the model", async () => {
      await using world = await openClientWorld(program);
      await using client = open(program, world);
      await generateText({ model: client.model(), system: "Answer like a pirate.", prompt: "do it" });
      const { told, prompts } = world.request(0);
      expect(told + prompts.join("\n")).toContain("Answer like a pirate.");
    });

    test("a conversation reaches the model", async () => {
      await using world = await openClientWorld(program);
      await using client = open(program, world);
      const messages = [
        { role: "user", content: "My name is Ada." },
        { role: "assistant", content: "Hello Ada." },
        { role: "user", content: "What is my name?" },
      ] as const;
      await generateText({ model: client.model(), messages: [...messages] });
      expect(world.request(0).prompts.join("\n")).toContain("What is my name?");
    });

    test("a streamed text, whatever script it is written in", async () => {
      await using world = await openClientWorld(program, { script: [say(SCRIPTS)], deltaChars: 2 });
      await using client = open(program, world);
      const parts: string[] = [];
      const { textStream, finishReason } = streamText({ model: client.model(), prompt: SCRIPTS });
      for await (const part of textStream) parts.push(part);
      expect(parts.join("")).toBe(SCRIPTS);
      expect(await finishReason).toBe("stop");
      expect(parts.length > 10).toBe(hasDeltas);
      expect(world.request(0).prompts.at(-1)).toContain(SCRIPTS);
    });

    test("an image goes with the prompt", async () => {
      await using world = await openClientWorld(program);
      await using client = open(program, world);
      const image = { type: "file", mediaType: "image/png", data: Buffer.from(PIXEL, "base64") } as const;
      const content = [{ type: "text", text: "look" } as const, image];
      await generateText({ model: client.model(), messages: [{ role: "user", content }] });
      expect(world.request(0).images).toBe(1);
    });

    test("what the agent does is told as calls of tools that are already carried out", async () => {
      const script = [command("echo hello"), patch("*** Add File: made.txt", "+hi"), say("Done.")];
      await using world = await openClientWorld(program, { script });
      await using client = open(program, world);
      const { fullStream } = streamText({ model: client.model({ sandboxMode: "workspace-write" }), prompt: "do it" });
      const seen: string[] = [];
      for await (const part of fullStream)
        if (part.type === "tool-call" || part.type === "tool-result") seen.push(`${part.type} ${part.toolName}`);
      expect(seen.length).toBeGreaterThanOrEqual(4);
      expect(await readFile(path.join(world.fixture.workspace, "made.txt"), "utf8")).toBe("hi\n");
    });

    test("an object of a schema", async () => {
      await using world = await openClientWorld(program, { script: [say('{"answer":"da"}')] });
      await using client = open(program, world);
      const schema = z.object({ answer: z.string() });
      const { output } = await generateText({
        model: client.model(),
        output: Output.object({ schema }),
        prompt: "do it",
      });
      expect(output).toEqual({ answer: "da" });
    });

    test("a tool of an MCP server that the client brings is called", async () => {
      const call = { calls: [{ tool: "mcp__echo__echo", args: { text: "你好" } }] };
      await using world = await openClientWorld(program, {
        script: [call, say("Done.")],
        files: { "echo.mjs": ECHO_SERVER },
      });
      await using client = open(program, world);
      const args = [path.join(world.fixture.root, "echo.mjs")];
      const model = client.model({
        mcpServers: { echo: { transport: "stdio", command: process.execPath, args } },
        configOverrides: { "mcp_servers.echo.default_tools_approval_mode": "approve" },
      });
      const { text } = await generateText({ model, prompt: "do it" });
      expect(text).toBe("Done.");
      expect(world.request(1).outputs.join()).toContain("你好");
    });

    test("settings of the client reach the model and the configuration", async () => {
      await using world = await openClientWorld(program);
      await using client = open(program, world);
      const configOverrides = { model_verbosity: "low", "sandbox_workspace_write.network_access": true };
      await generateText({ model: client.model({ reasoningEffort: "high", configOverrides }), prompt: "do it" });
      expect(world.request(0)).toMatchObject({ effort: "high", verbosity: "low" });
    });

    test("a request that is refused", async () => {
      const body = { error: { message: "no such thing" } };
      await using world = await openClientWorld(program, { faults: () => ({ kind: "status", status: 400, body }) });
      await using client = open(program, world);
      const answer = generateText({ model: client.model(), prompt: "do it", maxRetries: 0 });
      if (failure === undefined) expect((await answer).text).toContain("no such thing");
      else await expect(answer).rejects.toThrow(failure);
    });

    test("an aborted signal ends the run", async () => {
      await using world = await openClientWorld(program, { script: [command("sleep 60"), say("Never.")] });
      await using client = open(program, world);
      const controller = new AbortController();
      const { fullStream } = streamText({ model: client.model(), prompt: "do it", abortSignal: controller.signal });
      const seen: string[] = [];
      for await (const part of fullStream) {
        seen.push(part.type);
        if (part.type === "tool-call" || part.type === "tool-input-start") controller.abort();
      }
      expect(seen.at(-1)).toBe("abort");
    });
  });
}
