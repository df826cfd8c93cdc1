import type { InputPart, ModelOutputPart } from "@heddle/protocol";
import { expect, test } from "vitest";
import { modelInfo } from "../catalog/catalog.ts";
import { resolveProvider } from "../providers/providers.ts";
import type { ModelInput } from "../requests/stream.ts";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, HTTP_WIRES, sampleRequest, testProvider } from "../testing/testing-requests.ts";
import { repairHistory } from "./history.ts";

const say = (text: string): InputPart => ({ type: "text", text });
const user = (...parts: readonly InputPart[]): ModelInput => ({ kind: "user", parts });
const answer = (...parts: readonly ModelOutputPart[]): ModelInput => ({ kind: "assistant", parts });
const result = (isError: boolean, ...parts: readonly InputPart[]): ModelInput => ({
  kind: "toolResult",
  callId: "c1",
  name: "exec_command",
  shape: "json",
  isError,
  parts,
});
const IMAGE: InputPart = { type: "image", mediaType: "image/png", base64: "AAAA" };
const CALL: ModelOutputPart = { kind: "toolCall", callId: "c1", name: "exec_command", input: "null", shape: "json" };
const THOUGHT: ModelOutputPart = { kind: "reasoning", summary: ["hm"] };

function repaired(input: readonly ModelInput[], model = "some-model"): readonly ModelInput[] {
  const provider = resolveProvider([{ id: "openai", key: "k" }], "openai", {});
  return repairHistory({ provider, request: sampleRequest({ input }), info: modelInfo(provider, model) });
}

test("12.16: a conversation without anything to repair is sent as it is", () => {
  const input = [user(say("go"), IMAGE), answer(THOUGHT, { kind: "text", text: "ok" }, CALL), result(false, say("a"))];
  expect(repaired(input)).toEqual(input);
});

test("12.16: what says nothing is left out, and nothing is left without words", () => {
  const input = [
    user(say(" \n"), say("go")),
    answer({ kind: "text", text: "\n\n" }, CALL),
    result(true, say("")),
    answer(THOUGHT),
    answer({ kind: "text", text: "said" }, THOUGHT),
    user(say(" ")),
  ];
  expect(repaired(input)).toEqual([
    user(say("go")),
    answer(CALL),
    result(true, say("(no output)")),
    answer({ kind: "text", text: "said" }),
    user(say("(empty)")),
  ]);
});

test("12.16: a model that takes no images is told of them in words", () => {
  const told = repaired([user(say("look"), IMAGE), answer(CALL), result(false, IMAGE)], "deepseek-chat");
  expect(JSON.stringify(told)).not.toContain("AAAA");
  expect(JSON.stringify(told).match(/this model takes no images/g)).toHaveLength(2);
});

test.each(HTTP_WIRES)("12.16: the worst that a thread can hold is taken by %s", async (wire) => {
  await using server = await startModelServer({ respond: () => ({ text: "hi" }) });
  const tag = `${wire}:test`;
  const unsigned = { wire: tag, data: { type: "thinking", thinking: "hm", signature: "" } };
  const input = [
    user(say(" ")),
    answer({ ...THOUGHT, ...(wire === "anthropic" ? { opaque: unsigned } : {}) }, { kind: "text", text: " " }, CALL),
    result(true, IMAGE),
    answer(THOUGHT),
    answer({ ...CALL, callId: "c1", input: "[1]" }),
    result(true),
    user(say("go on")),
  ];
  const provider = testProvider(server, wire, wire === "anthropic" ? { vendor: "anthropic" } : {});
  expect(completedOf(await collect(provider, sampleRequest({ input }))).stopReason).toBe("end");
});

const HALF = "\ud83d";

test.each(HTTP_WIRES)("12.16: no request to %s holds half a surrogate pair, wherever it came from", async (wire) => {
  await using server = await startModelServer({ respond: () => ({ text: "hi" }) });
  const parameters = {
    type: "object",
    properties: { [`a${HALF}`]: { type: "string", enum: [`b${HALF}`, "\u{1f600}"] } },
  };
  const tools = [{ name: "odd", description: `odd ${HALF}`, shape: "json", parameters } as const];
  const input = [
    user(say(`go ${HALF}`)),
    answer(
      { ...CALL, callId: `${"x".repeat(63)}\u{1f600}`, input: '{"cmd":"echo \\ud83d \\ud83d\\ude00"}' },
      { ...CALL, callId: "c1", input: `${HALF} is no JSON` },
      { ...CALL, callId: "c2", name: "apply_patch", shape: "freeform", input: `+${HALF}` },
    ),
    result(false, say(HALF)),
  ];
  const request = sampleRequest({ input, tools, instructions: `Be brief. ${HALF}` });
  const outcome = await collect(testProvider(server, wire, { maxAttempts: 1 }), request);
  expect(completedOf(outcome).stopReason).toBe("end");
  expect(server.requests[0]?.source).toContain("echo \ufffd \u{1f600}");
});

test("12.16: a stored call of a name that no service takes is sent under one that fits, its result too", () => {
  const names = [
    "multi_tool_use.parallel",
    "",
    "\u5de5\u5177",
    "x".repeat(300),
    "9-lives",
    "exec.command",
    "exec_command",
  ];
  const sent = repaired(
    names.flatMap((name) => [answer({ ...CALL, name }), { ...result(false, say("a")), name }] as ModelInput[]),
  );
  const told = sent.flatMap((entry) => {
    if (entry.kind === "toolResult") return [entry.name];
    return entry.parts.flatMap((part) => ("kind" in part && part.kind === "toolCall" ? [part.name] : []));
  });
  const fitting = ["multi_tool_use_parallel", "unknown_tool", "__", "x".repeat(64), "_9-lives", "unknown_tool"];
  expect(told).toEqual([...fitting, "exec_command"].flatMap((name) => [name, name]));
});

test("12.16: a tool that is offered keeps its name, whatever it is", () => {
  const provider = resolveProvider([{ id: "openai", key: "k" }], "openai", {});
  const tools = [{ name: "odd.tool", description: "", shape: "json" } as const];
  const input = [user(say("go")), answer({ ...CALL, name: "odd.tool" })];
  const context = { provider, request: sampleRequest({ input, tools }), info: modelInfo(provider, "some-model") };
  expect(repairHistory(context)).toEqual(input);
});
