import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { resolveProvider, type Provider } from "../providers/providers.ts";
import type { Script } from "./script.ts";
import { parseScript } from "./script-schema.ts";
import { slices } from "./scripted.ts";
import type { ModelInput } from "../requests/stream.ts";
import { collect, completedOf, sampleRequest, typesOf } from "../testing/testing-requests.ts";

function scripted(script: Script): Provider {
  return resolveProvider([{ id: "scripted", script, retryBaseMs: 1 }], "scripted", {});
}

const said: ModelInput = { kind: "assistant", parts: [{ kind: "text", text: "said" }] };
const after = (answers: number): ModelInput[] => [
  ...sampleRequest().input,
  ...Array.from({ length: answers }, () => said),
];

describe("playing", () => {
  const script: Script = [
    {
      reasoning: "Hm.",
      text: "Let me look at this file for a moment.",
      calls: [{ tool: "exec_command", args: { cmd: "ls" } }],
    },
    { calls: [{ tool: "apply_patch", args: "*** Begin Patch" }], usage: { inputTokens: 7, outputTokens: 3 } },
    { text: "Done." },
  ];

  test("a step is streamed in several deltas and completed", async () => {
    const outcome = await collect(scripted(script));
    expect(typesOf(outcome)).toEqual(["requested", "reasoning.delta", "part", "text.delta", "part", "completed"]);
    expect(outcome.events.filter((event) => event.type === "text.delta").length).toBeGreaterThan(1);
    expect(completedOf(outcome)).toMatchObject({
      stopReason: "toolCalls",
      costUsd: 0,
      output: [
        { kind: "reasoning", summary: ["Hm."] },
        { kind: "text", text: "Let me look at this file for a moment." },
        { kind: "toolCall", callId: "call_1_1", name: "exec_command", input: '{"cmd":"ls"}', shape: "json" },
      ],
    });
  });

  test("the step is the number of answers in the request, so the same request gets the same answer", async () => {
    const second = sampleRequest({ input: after(1) });
    const once = completedOf(await collect(scripted(script), second));
    expect(once).toMatchObject({
      output: [{ callId: "call_2_1", name: "apply_patch", input: "*** Begin Patch", shape: "freeform" }],
      usage: { inputTokens: 7, cachedInputTokens: 0, outputTokens: 3 },
    });
    expect(completedOf(await collect(scripted(script), second))).toEqual(once);
  });

  test("beyond the end of the script the model says so and stops", async () => {
    expect(completedOf(await collect(scripted(script), sampleRequest({ input: after(9) })))).toMatchObject({
      stopReason: "end",
      output: [{ kind: "text", text: expect.stringContaining("script has ended") }],
    });
  });
});

describe("failing", () => {
  test("a passing failure is retried like a real one", async () => {
    const outcome = await collect(
      scripted([{ text: "hi", fail: { code: "provider.overloaded", message: "busy", times: 2 } }]),
    );
    expect(typesOf(outcome)).toEqual([
      "requested",
      "retrying",
      "requested",
      "retrying",
      "requested",
      "text.delta",
      "part",
      "completed",
    ]);
    expect(outcome.events[1]).toMatchObject({
      cause: { code: "provider.overloaded", message: "busy" },
      maxAttempts: 30,
    });
  });

  test("a failure that stays ends the request", async () => {
    const { error, events } = await collect(scripted([{ fail: { code: "auth.rejected" } }]));
    expect(error).toMatchObject({ code: "auth.rejected", message: "step 1 of the script fails here" });
    expect(events).toHaveLength(1);
  });

  test("a delay ends when the request is aborted", async () => {
    const controller = new AbortController();
    const run = collect(scripted([{ delayMs: 60_000, text: "late" }]), sampleRequest(), { signal: controller.signal });
    setImmediate(() => controller.abort());
    expect((await run).error?.code).toBe("turn.interrupted");
  });
});

describe("reading a script", () => {
  test.each([
    [[{ text: "a" }, { txt: "b" }], 'here: step 2: has an unknown key "txt"'],
    [[{ calls: [{ tool: "x" }] }], "here: step 1, calls.0.args: "],
    [[{ fail: { code: "provider.tired" } }], "here: step 1, fail.code: "],
    [[{ usage: { inputTokns: 1 } }], "here: step 1, usage: "],
    [{ steps: [] }, "here: the whole: "],
  ])("%j is refused, naming the step", (value, message) => {
    expect(() => parseScript(value, "here")).toThrow(
      expect.objectContaining({ code: "config.invalid", message: expect.stringContaining(message) }),
    );
  });

  test("a script may come from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "heddle-script-"));
    const scriptFile = join(folder, "script.json");
    const provider = resolveProvider([{ id: "scripted", scriptFile }], "scripted", {});
    expect((await collect(provider)).error).toMatchObject({
      code: "config.invalid",
      message: `the script ${scriptFile} cannot be read: it does not exist`,
    });
    await writeFile(scriptFile, "[{]");
    expect((await collect(provider)).error).toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("is not JSON"),
    });
    await writeFile(scriptFile, '[{"text":"from a file"}]');
    expect(completedOf(await collect(provider)).output).toEqual([{ kind: "text", text: "from a file" }]);
    await rm(folder, { recursive: true });
  });

  test("a scripted provider without a script says what it needs", async () => {
    expect((await collect(resolveProvider([], "scripted", {}))).error?.message).toBe(
      "provider scripted: give it a script or a scriptFile",
    );
  });
});

test("deltas never cut a letter in two", () => {
  const text = "ab🌍🌍c";
  for (const size of [1, 2, 3]) {
    expect(slices(text, size).join("")).toBe(text);
    expect(slices(text, size).every((slice) => slice.isWellFormed())).toBe(true);
  }
});
