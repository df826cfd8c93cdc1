/** Quirks of ACP agents, message by message. */
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled, type HeardWire } from "../../../test/dialect-turn.ts";
import { acpDialect } from "./acp.ts";
import type { Conversation, ModelCall, ProgramTurn, Wire } from "./conversation.ts";

const HELLO = [{ type: "text", text: "hello" }] as const;

interface Agent {
  readonly name?: string;
  readonly able?: object;
}

/** Answers the last request that was sent. */
async function answer(talk: Conversation, { sent }: HeardWire, result: object): Promise<void> {
  const asked = sent.findLast(({ method, id }) => method !== undefined && id !== undefined);
  await talk.receive({ jsonrpc: "2.0", id: asked?.["id"], result });
  await settled();
}

async function begun(
  turn: ProgramTurn,
  { name = "play", able = { loadSession: true } }: Agent = {},
  wire: HeardWire = heardWire(),
): Promise<{ readonly wire: HeardWire; readonly talk: Conversation }> {
  const talk = acpDialect.open(wire, turn);
  const ready = talk.begin();
  await settled();
  const agentInfo = { name, version: "1.0.0" };
  await answer(talk, wire, { protocolVersion: 1, agentInfo, agentCapabilities: able });
  await answer(talk, wire, { sessionId: "ses_1" });
  await ready;
  return { wire, talk };
}

test("an end that it says before it was told to stop is its own", async () => {
  const held = Promise.withResolvers<void>();
  const heard = heardWire();
  const wire: HeardWire & Wire = {
    sent: heard.sent,
    async send(message) {
      if ("method" in message && message.method === "session/cancel") await held.promise;
      await heard.send(message);
    },
    finish: (text) => heard.finish(text),
  };
  const { talk } = await begun(dialectTurn(), {}, wire);
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const told = talk.interrupt();
  await settled();
  await answer(talk, wire, { stopReason: "end_turn" });
  expect(await prompted).toMatchObject({ kind: "completed" });
  held.resolve();
  await told;
});

test.each([
  [["allow_always", "reject_once"], "accept", { outcome: "selected", optionId: "reject_once" }],
  [["allow_always"], "accept", { outcome: "cancelled" }],
  [["allow_always", "allow_once"], "accept", { outcome: "selected", optionId: "allow_once" }],
  [["allow_once", "reject_always"], "decline", { outcome: "selected", optionId: "reject_always" }],
] as const)("of %j, a user's %s is answered with %j: only Heddle remembers a yes", async (kinds, decision, outcome) => {
  const { talk, wire } = await begun(dialectTurn({ decide: () => decision }));
  const prompted = talk.prompt(HELLO, undefined);
  prompted.catch(() => undefined);
  await settled();
  const toolCall = { toolCallId: "c1", kind: "execute", title: "make", rawInput: { command: "make" } };
  const options = kinds.map((kind) => ({ optionId: kind, kind, name: kind }));
  await talk.receive({
    id: 77,
    method: "session/request_permission",
    params: { sessionId: "ses_1", toolCall, options },
  });
  await settled();
  expect(wire.sent.at(-1)).toMatchObject({ id: 77, result: { outcome } });
});

test("usage that an agent counts for its session is taken once, also by a later process", async () => {
  const spent: ModelCall[] = [];
  const before = { inputTokens: 100, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 20 };
  const countedBefore = { ...before, reasoningOutputTokens: 0 };
  const turn = dialectTurn({
    spent: (call) => void spent.push(call),
    changes: { handle: { id: "ses_1", isOfOther: false }, countedBefore },
  });
  const { talk, wire } = await begun(turn, { name: "copilot" });
  for (const [inputTokens, outputTokens] of [
    [150, 30],
    [170, 45],
  ]) {
    const prompted = talk.prompt(HELLO, undefined);
    await settled();
    await answer(talk, wire, { stopReason: "end_turn", usage: { inputTokens, outputTokens } });
    await prompted;
  }
  expect(spent.map(({ usage }) => [usage.inputTokens, usage.outputTokens])).toEqual([
    [50, 10],
    [20, 15],
  ]);
});

test("usage that begins at nothing in a new process is taken whole", async () => {
  const spent: ModelCall[] = [];
  const before = { inputTokens: 100, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 20 };
  const countedBefore = { ...before, reasoningOutputTokens: 0 };
  const turn = dialectTurn({
    spent: (call) => void spent.push(call),
    changes: { handle: { id: "ses_1", isOfOther: false }, countedBefore },
  });
  const { talk, wire } = await begun(turn, { name: "copilot" });
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  await answer(talk, wire, { stopReason: "end_turn", usage: { inputTokens: 40, outputTokens: 30 } });
  await prompted;
  expect(spent.map(({ usage }) => [usage.inputTokens, usage.outputTokens])).toEqual([[40, 30]]);
});

test("what an agent declares at its start is known from then on", async () => {
  const declared: Record<string, boolean> = {};
  const turn = dialectTurn({ changes: { declared: (found) => void Object.assign(declared, found) } });
  await begun(turn, { able: { promptCapabilities: { image: false } } });
  expect(declared).toEqual({ images: false, resume: false });
  await begun(turn, { able: { loadSession: true, promptCapabilities: { image: true } } });
  expect(declared).toEqual({ images: true, resume: true });
});
