/**
 * What the Codex SDK's own tests hold Codex to, in cases of our own: whole events, whole settings, failures in Codex's
 * words. Every expectation is held against Codex first, then against Heddle.
 */
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ECHO_CONFIG, ECHO_SERVER } from "./app-server/scenarios/mcp.ts";
import { say } from "./exec-case.ts";
import { codex, heddle } from "./program.ts";
import { collect, openSdkWorld, SCHEMA, USAGE } from "./sdk-thread.ts";

const SCRIPTS = "漢字かな交じり文。Кириллица, العربية, עברית, हिन्दी 🙂";

describe.each([codex(), heddle])("@openai/codex-sdk over $name", (program) => {
  test("events have the fields that Codex has, and no other", async () => {
    await using world = await openSdkWorld(program);
    const thread = world.open().startThread(world.thread);
    expect(await collect((await thread.runStreamed("do it")).events)).toEqual([
      { type: "thread.started", thread_id: thread.id },
      { type: "turn.started" },
      { type: "item.completed", item: { id: "item_0", type: "agent_message", text: "Hello." } },
      { type: "turn.completed", usage: USAGE },
    ]);
  });

  test("a schema is asked for in Codex's form, and an answer that does not fit is the caller's to judge", async () => {
    await using world = await openSdkWorld(program, { script: [say("no JSON at all")] });
    const turn = await world.open().startThread(world.thread).run("do it", { outputSchema: SCHEMA });
    expect(turn.finalResponse).toBe("no JSON at all");
    expect(world.server.requests).toHaveLength(1);
    const format = { type: "json_schema", name: "codex_output_schema", strict: true, schema: SCHEMA };
    expect(world.request(0).format).toEqual(format);
  });

  test("an image that is none, and one that is not there, do not hold up the turn", async () => {
    await using world = await openSdkWorld(program, { files: { "ws/text.png": "no image" } });
    const image = (name: string) => ({ type: "local_image", path: path.join(world.fixture.workspace, name) }) as const;
    const input = [{ type: "text", text: "look" } as const, image("text.png"), image("gone.png")];
    expect(await world.open().startThread(world.thread).run(input)).toMatchObject({ finalResponse: "Hello." });
    expect(world.request(0).images).toBe(0);
  });

  test("an answer that breaks off again and again fails in Codex's words", async () => {
    const body = `event: error\ndata: ${JSON.stringify({ type: "error", error: { code: "rate_limit_exceeded", message: "too many" } })}\n\n`;
    await using world = await openSdkWorld(program, { faults: () => ({ kind: "body", body }) });
    const turn = world.open().startThread(world.thread).run("do it");
    await expect(turn).rejects.toThrow(/^stream disconnected before completion: /);
  });

  test("requests say which library sent them", async () => {
    await using world = await openSdkWorld(program);
    await world.open().startThread(world.thread).run("do it");
    expect(world.server.requests[0]?.headers["originator"]).toBe("codex_sdk_ts");
  });

  test("a provider with keys that only Codex has, and no model, is asked for Codex's", async () => {
    await using world = await openSdkWorld(program, { config: "" });
    const mine = {
      name: "mine",
      base_url: `${world.server.url}/v1`,
      wire_api: "responses",
      supports_websockets: false,
    };
    const config = { model_provider: "mine", model_providers: { mine }, features: { plugins: false } };
    const turn = await world.open({ config }).startThread(world.thread).run("do it");
    expect(turn.finalResponse).toBe("Hello.");
    expect(world.request(0).model).toMatch(/^gpt-/);
  });

  test("folders besides the workspace need not exist", async () => {
    await using world = await openSdkWorld(program);
    const additionalDirectories = ["../backend", path.join(world.fixture.root, "none")];
    const thread = world.open().startThread({ ...world.thread, sandboxMode: "workspace-write", additionalDirectories });
    expect(await thread.run("do it")).toMatchObject({ finalResponse: "Hello." });
  });

  test("overrides are TOML of any depth, and what a thread says counts more", async () => {
    await using world = await openSdkWorld(program);
    const config = {
      approval_policy: "never",
      sandbox_workspace_write: { network_access: true },
      retry_budget: 3,
      tool_rules: { allow: ["git status", "git diff"] },
      model_reasoning_effort: "low",
    };
    const thread = world.open({ config }).startThread({ ...world.thread, modelReasoningEffort: "high" });
    expect(await thread.run("do it")).toMatchObject({ finalResponse: "Hello." });
    expect(world.request(0).effort).toBe("high");
  });

  test("instructions of the configuration reach the model, in every turn", async () => {
    await using world = await openSdkWorld(program);
    const config = { developer_instructions: "Answer like a pirate." };
    const thread = world.open({ config }).startThread(world.thread);
    await thread.run("first");
    await thread.run("second");
    for (const number of [0, 1]) expect(world.request(number).told).toContain("Answer like a pirate.");
  });

  test("a guide of the workspace reaches the model", async () => {
    await using world = await openSdkWorld(program, { files: { "ws/AGENTS.md": "Use tabs, never spaces.\n" } });
    await world.open().startThread(world.thread).run("do it");
    const { told, prompts } = world.request(0);
    expect(told + prompts.join("\n")).toContain("Use tabs, never spaces.");
  });

  test("a tool of an MCP server that the caller configures is called, with text in another script", async () => {
    const script = [{ calls: [{ tool: "mcp__echo__echo", args: { text: "你好" } }] }, say("Done.")];
    const config = ECHO_CONFIG.replace("prompt", "approve");
    await using world = await openSdkWorld(program, { script, config, files: { "echo.mjs": ECHO_SERVER } });
    const { items, finalResponse } = await world.open().startThread(world.thread).run("do it");
    expect(finalResponse).toBe("Done.");
    const content = [{ type: "text", text: "你好" }];
    expect(items[0]).toMatchObject({ type: "mcp_tool_call", server: "echo", tool: "echo", result: { content } });
    expect(world.request(1).outputs.join()).toContain("你好");
  });

  test("words in any script reach the model and come back", async () => {
    await using world = await openSdkWorld(program, { script: [say(SCRIPTS)], deltaChars: 1 });
    const { finalResponse } = await world.open().startThread(world.thread).run(SCRIPTS);
    expect(finalResponse).toBe(SCRIPTS);
    expect(world.request(0).prompts.at(-1)).toBe(SCRIPTS);
  });
});
