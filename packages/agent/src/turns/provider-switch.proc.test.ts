import { startModelServer, type HttpWire, type ModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

/** The same ids from both, as two providers that know nothing of each other make them. */
const SCRIPT = {
  a: { tool: "exec_command", key: "cmd", model: "gpt-5.5", wire: "openai-responses" },
  b: { tool: "bash", key: "command", model: "claude-sonnet-5-5", wire: "anthropic" },
} as const satisfies Record<string, { tool: string; key: string; model: string; wire: HttpWire }>;

async function serve(which: keyof typeof SCRIPT): Promise<ModelServer> {
  const { tool, key } = SCRIPT[which];
  let asked = 0;
  return startModelServer({
    // Every second request is answered with a call, the others end the turn.
    respond: () => {
      asked += 1;
      const command = `echo made by ${which} ${asked}`;
      return asked % 2 === 1
        ? { reasoning: `thoughts of ${which}`, calls: [{ tool, args: { [key]: command }, id: "call.1" }] }
        : { text: `done by ${which} ${asked}` };
    },
  });
}

interface Seen {
  readonly calls: readonly string[];
  readonly results: readonly string[];
  readonly text: string;
}

function seenBy(server: ModelServer, number: number): Seen {
  const body: unknown = server.requests[number]?.body;
  const calls: string[] = [];
  const results: string[] = [];
  JSON.stringify(body, (_key, value: unknown) => {
    const item: Readonly<Record<string, unknown>> = Object(value);
    if (item["type"] === "tool_use") calls.push(String(item["id"]));
    if (item["type"] === "function_call") calls.push(String(item["call_id"]));
    if (item["type"] === "tool_result") results.push(String(item["tool_use_id"]));
    if (item["type"] === "function_call_output") results.push(String(item["call_id"]));
    return value;
  });
  return { text: JSON.stringify(body), calls, results };
}

test("G7: a thread goes from one provider to another and back", async () => {
  await using a = await serve("a");
  await using b = await serve("b");
  await using t = await openTestHeddle({
    providers: [a.provider("openai-responses", { id: "a" }), b.provider("anthropic", { id: "b" })],
  });
  let thread: string | undefined;
  for (const which of ["a", "b", "a"] as const) {
    const handle = await t.heddle.as("user:owner").startTurn({
      thread: thread ?? { workspace: t.workspace, origin: "test" },
      input: [{ type: "text", text: `go on with ${which}` }],
      settings: { ...t.settings, provider: which, model: SCRIPT[which].model },
    });
    thread = handle.threadId;
    expect((await handle.done).body).toMatchObject({ status: "completed" });
  }
  expect([a.requests.length, b.requests.length]).toEqual([4, 2]);

  const toB = seenBy(b, 1);
  expect(toB.text).toContain("made by a 1");
  expect(toB.text).toContain("done by a 2");
  // What only A can read is not sent to B, and the other way round; each gets back its own.
  expect(toB.text).not.toContain("sealed-");
  const backToA = seenBy(a, 3);
  expect(backToA.text).toContain("made by b 1");
  expect(backToA.text).toContain("sealed-");
  expect(backToA.text).not.toMatch(/signature|signed-/);
  for (const { calls, results } of [toB, backToA]) {
    expect(calls.length).toBeGreaterThanOrEqual(2);
    expect(new Set(calls).size).toBe(calls.length);
    expect([...results].toSorted()).toEqual([...calls].toSorted());
  }
  for (const id of toB.calls) expect(id).toMatch(/^[\w-]{1,64}$/);
});
