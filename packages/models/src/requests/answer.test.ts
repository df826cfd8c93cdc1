import type { ModelOutputPart } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, HTTP_WIRES, testProvider } from "../testing/testing-requests.ts";

const callsIn = (output: readonly ModelOutputPart[]): unknown[] =>
  output.flatMap((part) => (part.kind === "toolCall" ? [[part.callId, part.name, part.input]] : []));

describe.each(HTTP_WIRES)("%s", (wire) => {
  test("the same call twice is one call", async () => {
    const call = { tool: "exec_command", args: { cmd: "ls" }, id: "same" };
    await using server = await startModelServer({ script: [{ calls: [call, call] }] });
    const outcome = await collect(testProvider(server, wire));
    expect(callsIn(completedOf(outcome).output)).toEqual([["same", "exec_command", '{"cmd":"ls"}']]);
    expect(outcome.events.filter((event) => event.type === "part" && event.part.kind === "toolCall")).toHaveLength(1);
  });

  test("two different calls with one id get an id each", async () => {
    const calls = [
      { tool: "exec_command", args: { cmd: "ls" }, id: "same" },
      { tool: "exec_command", args: { cmd: "pwd" }, id: "same" },
    ];
    await using server = await startModelServer({ script: [{ calls }] });
    const provider = testProvider(server, wire);
    const { output } = completedOf(await collect(provider));
    expect(callsIn(output)).toEqual([
      ["same", "exec_command", '{"cmd":"ls"}'],
      ["same_2", "exec_command", '{"cmd":"pwd"}'],
    ]);
  });

  test("calls beyond the 32nd are left out, and the answer says so", async () => {
    const calls = Array.from({ length: 1000 }, (_, index) => ({
      tool: "exec_command",
      args: { cmd: `echo ${index}` },
    }));
    await using server = await startModelServer({ script: [{ calls }] });
    const { output, stopReason } = completedOf(await collect(testProvider(server, wire)));
    expect(callsIn(output)).toHaveLength(32);
    expect(stopReason).toBe("toolCalls");
    expect(output.at(-1)).toEqual({
      kind: "text",
      text: "[968 more tool calls were left out: at most 32 run from one answer.]",
    });
  });
});

// Gemini carries arguments as an object; what is not JSON cannot travel there.
test.each(HTTP_WIRES.filter((wire) => wire !== "gemini"))(
  "%s: arguments that are not JSON are handed on as they are",
  async (wire) => {
    const calls = [{ tool: "exec_command", args: '{"cmd": "ls' }];
    await using server = await startModelServer({ script: [{ calls }] });
    expect(callsIn(completedOf(await collect(testProvider(server, wire))).output)).toEqual([
      ["call_1_1", "exec_command", '{"cmd": "ls'],
    ]);
  },
);

test("a tool call without an id gets one", async () => {
  const chunk = {
    candidates: [{ content: { parts: [{ functionCall: { name: "exec_command" } }] }, finishReason: "STOP" }],
  };
  await using server = await startModelServer({
    faults: [{ kind: "body", body: `data: ${JSON.stringify(chunk)}\n\n` }],
  });
  const { output } = completedOf(await collect(testProvider(server, "gemini")));
  expect(output).toMatchObject([
    { kind: "toolCall", callId: expect.stringMatching(/^call_/), name: "exec_command", input: "{}" },
  ]);
});
