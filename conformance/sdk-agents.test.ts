/**
 * The OpenAI Agents SDK with its Codex tool (`@openai/agents-extensions`), unchanged: an agent whose own model is played
 * here hands work to Codex, then to Heddle.
 */
import path from "node:path";
import { Agent, Runner, Usage, type Model, type ModelResponse } from "@openai/agents";
import { codexTool, type CodexToolOptions } from "@openai/agents-extensions/experimental/codex";
import type { ThreadEvent } from "@openai/codex-sdk";
import { describe, expect, test } from "vitest";
import { ECHO_CONFIG, ECHO_SERVER } from "./app-server/scenarios/mcp.ts";
import { command, say } from "./exec-case.ts";
import { codex, heddle, type Program } from "./program.ts";
import { openClientWorld, type ClientWorld } from "./sdk-world.ts";

type Input = { readonly type: "text"; readonly text: string } | { readonly type: "local_image"; readonly path: string };

/** Calls the tool once for each list of inputs, then says that it is done. */
function caller(...calls: readonly (readonly Input[])[]): Model {
  let turn = 0;
  return {
    getResponse: async (): Promise<ModelResponse> => {
      const inputs = calls[turn];
      turn += 1;
      if (inputs === undefined) {
        const content = [{ type: "output_text" as const, text: "The agent is done." }];
        return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
      }
      const call = { type: "function_call", callId: `call_${turn}`, name: "codex", status: "completed" } as const;
      return { usage: new Usage(), output: [{ ...call, arguments: JSON.stringify({ inputs, threadId: null }) }] };
    },
    getStreamedResponse: () => {
      throw new Error("nobody streams here");
    },
  };
}

interface Played {
  readonly final: unknown;
  /** What the tool answered, call by call. */
  readonly answers: readonly string[];
  readonly events: readonly ThreadEvent[];
}

async function play(
  program: Program,
  world: ClientWorld,
  calls: readonly (readonly Input[])[],
  options: CodexToolOptions = {},
): Promise<Played> {
  const events: ThreadEvent[] = [];
  const tool = codexTool({
    codexOptions: { codexPathOverride: program.file, env: { ...world.fixture.env } },
    workingDirectory: world.fixture.workspace,
    persistSession: true,
    onStream: ({ event }) => void events.push(event),
    ...options,
  });
  const agent = new Agent({ name: "Caller", model: caller(...calls), tools: [tool] });
  const runner = new Runner({ tracingDisabled: true });
  const { finalOutput, newItems } = await runner.run(agent, "go");
  const answers = newItems.flatMap((item) =>
    item.type === "tool_call_output_item"
      ? [typeof item.output === "string" ? item.output : JSON.stringify(item.output)]
      : [],
  );
  return { final: finalOutput, answers, events };
}

const text = (words: string): readonly Input[] => [{ type: "text", text: words }];
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each([codex(), heddle])("@openai/agents-extensions over $name", (program) => {
  test("the tool answers with what Codex said, and with its usage", async () => {
    await using world = await openClientWorld(program);
    const { final, answers, events } = await play(program, world, [text("do it")]);
    expect(final).toBe("The agent is done.");
    expect(answers).toHaveLength(1);
    expect(answers[0]).toContain("Hello.");
    expect(events.map(({ type }) => type)).toEqual([
      "thread.started",
      "turn.started",
      "item.completed",
      "turn.completed",
    ]);
    expect(world.request(0).prompts.at(-1)).toBe("do it");
  });

  test("a second call goes on with the same thread", async () => {
    await using world = await openClientWorld(program);
    const { answers } = await play(program, world, [text("first"), text("second")]);
    expect(answers[1]).toContain("Again.");
    expect(world.request(1).prompts.slice(-2)).toEqual(["first", "second"]);
  });

  test("words in any script reach the model and come back", async () => {
    const words = "漢字とかな。Кириллица, العربية 🙂";
    await using world = await openClientWorld(program, { script: [say(words)] });
    const { answers } = await play(program, world, [text(words)]);
    expect(answers[0]).toContain(words);
    expect(world.request(0).prompts.at(-1)).toBe(words);
  });

  test("a local image goes with the words", async () => {
    await using world = await openClientWorld(program, { setUp: `echo ${PIXEL} | base64 -d > pixel.png` });
    const image = { type: "local_image", path: path.join(world.fixture.workspace, "pixel.png") } as const;
    await play(program, world, [[{ type: "text", text: "look" }, image]]);
    expect(world.request(0).images).toBe(1);
  });

  test("commands are events, and the sandbox is the one that was asked for", async () => {
    const script = [command("echo x > made.txt; sleep 0.3; echo ran"), say("Done.")];
    await using world = await openClientWorld(program, { script });
    const { events } = await play(program, world, [text("do it")], { sandboxMode: "workspace-write" });
    expect(events.find(({ type }) => type === "item.completed")).toMatchObject({
      item: { type: "command_execution", aggregated_output: "ran\n", exit_code: 0, status: "completed" },
    });
    expect(await world.fixture.look("ws/made.txt")).toBe("x\n");
  });

  test("a schema reaches the model, and its answer the agent", async () => {
    await using world = await openClientWorld(program, { script: [say('{"answer":"yes"}')] });
    const outputSchema = {
      properties: [{ name: "answer", schema: { type: "string" as const } }],
      required: ["answer"],
    };
    const { answers } = await play(program, world, [text("do it")], { outputSchema });
    expect(answers[0]).toContain("yes");
    expect(world.request(0).format).toMatchObject({ type: "json_schema", schema: { required: ["answer"] } });
  });

  test("instructions and MCP servers of the configuration are Codex's own", async () => {
    const call = { calls: [{ tool: "mcp__echo__echo", args: { text: "你好" } }] };
    const config = ECHO_CONFIG.replace("prompt", "approve");
    await using world = await openClientWorld(program, {
      script: [call, say("Done.")],
      config: `developer_instructions = "Answer like a pirate."\n${config}`,
      files: { "echo.mjs": ECHO_SERVER },
    });
    const { answers, events } = await play(program, world, [text("do it")]);
    expect(answers[0]).toContain("Done.");
    expect(world.request(0).told).toContain("Answer like a pirate.");
    expect(world.request(1).outputs.join()).toContain("你好");
    expect(events.find(({ type }) => type === "item.completed")).toMatchObject({
      item: { type: "mcp_tool_call", server: "echo", tool: "echo", status: "completed" },
    });
  });

  test("a turn that fails is told to the agent", async () => {
    const body = { error: { message: "no such thing" } };
    await using world = await openClientWorld(program, { faults: () => ({ kind: "status", status: 400, body }) });
    const { answers } = await play(program, world, [text("do it")]);
    expect(answers[0]).toContain("no such thing");
  });
});
