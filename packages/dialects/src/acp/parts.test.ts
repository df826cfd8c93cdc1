/** Prompts, diffs, questions and options, one by one. */
import { describe, expect, test } from "vitest";
import type { ApprovalQuestion, FileChangeEntry } from "@heddle/protocol";
import { diffContent } from "./diffs.ts";
import { inputFrom, skillInput, slashCommand } from "./input.ts";
import { ACP_PARAMS } from "./params.ts";
import { answerFrom, askedCall, permissionRequest } from "./permissions.ts";
import { configOptions, sessionInfo, sessionState } from "./state.ts";
import { toolCallOf } from "./tool-calls.ts";
import type { AcpClient } from "./shapes.ts";

describe("prompts", () => {
  test("a file that came whole is context by its path, once, and named where it was named", () => {
    const resource = { uri: "file:///w/a%20b.ts", text: "let a" };
    const { input, context } = inputFrom([
      { type: "text", text: "see " },
      { type: "resource", resource },
      { type: "resource", resource },
      { type: "text", text: "" },
    ]);
    const chosen = { type: "mention", name: "a b.ts", path: "/w/a b.ts" };
    const named = { type: "text", text: "@a b.ts (/w/a b.ts)", chosen };
    expect(input).toEqual([{ type: "text", text: "see " }, named, named]);
    expect(context).toEqual([{ name: "/w/a b.ts", kind: "untrusted", text: "let a" }]);
  });

  test.each([
    ["https://example.test/x", "https://example.test/x"],
    ["file:///w/%E0%A4%A", "/w/%E0%A4%A"],
    ["file://localhost/w/x", "/w/x"],
  ])("a link to %s is named as %s", (uri, path) => {
    expect(inputFrom([{ type: "resource_link", uri, name: "x" }]).input).toMatchObject([{ text: `@x (${path})` }]);
  });

  test("an image as a file is an image", () => {
    const resource = { uri: "file:///x.png", blob: "AA==", mimeType: "image/png" };
    expect(inputFrom([{ type: "resource", resource }]).input).toEqual([
      { type: "image", mediaType: "image/png", base64: "AA==" },
    ]);
  });

  test.each([
    ["/compact", { name: "compact", rest: "" }],
    ["  /review the\ndiff ", { name: "review", rest: "the\ndiff" }],
    ["/plugin:skill go", { name: "plugin:skill", rest: "go" }],
    ["/usr/bin is a folder", undefined],
    ["see /compact", undefined],
    ["/", undefined],
  ])("%j as a slash command", (text, command) => {
    expect(slashCommand([{ type: "text", text }])).toEqual(command);
  });

  test("a skill is named as agents know it, with what was said beside it", () => {
    const prompt = [
      { type: "text", text: "/tidy now" },
      { type: "resource_link", uri: "file:///a", name: "a" },
    ] as const;
    expect(
      skillInput(prompt, { name: "tidy", rest: "now" }, "/s").input.map((part) => "text" in part && part.text),
    ).toEqual(["$tidy", "now", "@a (/a)"]);
  });

  test("folders are absolute, servers are what the protocol knows", () => {
    const parse = (params: unknown): boolean => ACP_PARAMS["session/new"].safeParse(params).success;
    expect(parse({ cwd: "/w", mcpServers: [], later: true })).toBe(true);
    expect(parse({ cwd: "w", mcpServers: [] })).toBe(false);
    expect(parse({ cwd: "/w", mcpServers: [{ name: "x", command: "y", args: [], env: [] }] })).toBe(true);
    expect(parse({ cwd: "/w", mcpServers: [{ type: "http", name: "x", url: "http://y", headers: [] }] })).toBe(true);
    expect(parse({ cwd: "/w", mcpServers: [{ name: "x" }] })).toBe(false);
  });
});

describe("diffs", () => {
  const diff = (entry: Partial<FileChangeEntry>) => diffContent({ path: "/w/a", kind: "update", diff: "", ...entry });

  test("each hunk is one pair of texts", () => {
    const text = "@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n@@ -9 +9 @@\n-nine\n+neun\n";
    expect(diff({ diff: text })).toEqual([
      { type: "diff", path: "/w/a", oldText: "one\ntwo\n", newText: "one\nzwei\n" },
      { type: "diff", path: "/w/a", oldText: "nine\n", newText: "neun\n" },
    ]);
  });

  test("a new file has no text before, a deleted one none after, a moved one its new path", () => {
    expect(diff({ kind: "add", diff: "@@ -0,0 +1 @@\n+x\n" })).toMatchObject([{ oldText: null, newText: "x\n" }]);
    expect(diff({ kind: "delete", diff: "@@ -1 +0,0 @@\n-x\n" })).toMatchObject([{ oldText: "x\n", newText: "" }]);
    expect(diff({ movedTo: "/w/b", diff: "@@ -1 +1 @@\n-x\n+y\n" })).toMatchObject([{ path: "/w/b" }]);
  });

  test("a missing newline at the end counts for the side that lacks it", () => {
    const text = "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n";
    expect(diff({ diff: text })).toMatchObject([{ oldText: "x", newText: "x\n" }]);
  });

  test("lines that look like heads of files are lines inside a hunk", () => {
    const text = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n--- old\n+++ new\n";
    expect(diff({ diff: text })).toMatchObject([{ oldText: "-- old\n", newText: "++ new\n" }]);
  });
});

const CLIENT: AcpClient = {
  name: "",
  drawsTerminals: false,
  showsNotices: false,
  showsCompactions: false,
  hasForms: false,
};
const WITH_FORMS = { ...CLIENT, hasForms: true };
const at = { callId: "k", itemId: "c" };

function asked(question: ApprovalQuestion, client = CLIENT) {
  return permissionRequest("s", { question, call: askedCall(question, undefined) }, client);
}

describe("questions", () => {
  const command: ApprovalQuestion = { kind: "command", ...at, command: "x", cwd: "/w" };
  const input: ApprovalQuestion = {
    kind: "userInput",
    ...at,
    questions: [
      { id: "q", header: "Taste", question: "Sweet?", options: [{ label: "yes", description: "with sugar" }] },
    ],
  };

  test.each([
    [{ outcome: { outcome: "selected", optionId: "allow" } }, "accept"],
    [{ outcome: { outcome: "selected", optionId: "allow_always" } }, "acceptForThread"],
    [{ outcome: { outcome: "selected", optionId: "reject" } }, "decline"],
    [{ outcome: { outcome: "selected", optionId: "something else" } }, "decline"],
    [{ outcome: { outcome: "cancelled" } }, "cancel"],
    [{}, "decline"],
    ["yes", "decline"],
    [null, "decline"],
  ])("%j is %s", (result, decision) => {
    expect(answerFrom(result, command)).toEqual({ decision });
  });

  test("what goes beyond the envelope is said in the request", () => {
    const permissions = { read: [], write: ["/elsewhere"], network: true };
    const wider = asked({ ...command, wish: { kind: "wider", permissions } });
    expect(JSON.stringify(wider)).toContain("write /elsewhere; use the network");
    expect(JSON.stringify(asked({ ...command, wish: { kind: "outside" } }))).toContain("without the sandbox");
    expect(asked({ kind: "permissions", ...at, cwd: "/w", permissions })).toMatchObject({
      method: "session/request_permission",
      params: { toolCall: { title: "More permissions for this session" } },
    });
  });

  test("a question of the agent is a form where there are forms, a choice where it has options, else nothing", () => {
    expect(asked(input, WITH_FORMS)).toMatchObject({
      method: "elicitation/create",
      params: { mode: "form", requestedSchema: { properties: { q: { type: "string", title: "Taste" } } } },
    });
    expect(answerFrom({ action: "accept", content: { q: "no" } }, input)).toEqual({
      decision: "accept",
      answers: { q: ["no"] },
    });
    expect(asked(input)).toMatchObject({ params: { options: [{ optionId: "yes", name: "yes" }] } });
    expect(answerFrom({ outcome: { outcome: "selected", optionId: "yes" } }, input)).toEqual({
      decision: "accept",
      answers: { q: ["yes"] },
    });
    expect(asked({ ...input, questions: [] })).toBeUndefined();
  });

  test("a question of an MCP server needs a form", () => {
    const question: ApprovalQuestion = { kind: "elicitation", ...at, server: "own", message: "who?", schema: {} };
    expect(asked(question)).toBeUndefined();
    expect(asked(question, WITH_FORMS)).toMatchObject({
      method: "elicitation/create",
      params: { message: "own: who?" },
    });
    expect(answerFrom({ action: "accept", content: { a: 1 } }, question)).toEqual({
      decision: "accept",
      content: { a: 1 },
    });
    expect(answerFrom({ action: "cancel" }, question)).toEqual({ decision: "decline" });
  });
});

test("calls of tools have a title, a kind and what they gave", () => {
  const call = { id: "c", callId: "k", status: "completed" } as const;
  expect(toolCallOf({ type: "toolCall", ...call, tool: "grep", arguments: { pattern: "x y" }, output: "3" })).toEqual({
    toolCallId: "c",
    title: "grep x y",
    kind: "search",
    status: "completed",
    rawInput: { pattern: "x y" },
    content: [{ type: "content", content: { type: "text", text: "3" } }],
  });
  const result = { content: [{ type: "text", text: "a" }, { type: "odd" }, null] };
  expect(toolCallOf({ type: "mcpToolCall", ...call, server: "s", tool: "t", arguments: {}, result })).toMatchObject({
    title: "s: t",
    content: [{ type: "content", content: { type: "text", text: "a" } }],
  });
  expect(toolCallOf({ type: "agentMessage", id: "m", text: "" })).toBeUndefined();
});

test("a session can be set by modes and by options, which say the same", () => {
  const choices = {
    modes: [{ id: "explore", description: "look" }],
    mode: "explore",
    models: ["m", "n"],
    model: "m",
    effort: "huge",
  };
  expect(sessionState(choices)).toMatchObject({ modes: { currentModeId: "explore" }, models: { currentModelId: "m" } });
  expect(configOptions(choices)).toMatchObject([
    { id: "mode", category: "mode", currentValue: "explore" },
    { id: "model", category: "model", currentValue: "m" },
    { id: "effort", currentValue: "huge", options: [{}, {}, {}, {}, { value: "huge" }] },
  ]);
});

test("a session in a list has a title where there is one", () => {
  const facts = { id: "t", workspace: "/w", name: undefined, title: undefined, preview: "hi", updatedAt: 0 };
  expect(sessionInfo(facts)).toEqual({ sessionId: "t", cwd: "/w", title: "hi", updatedAt: "1970-01-01T00:00:00.000Z" });
  expect(sessionInfo({ ...facts, name: "n" })).toMatchObject({ title: "n" });
});
