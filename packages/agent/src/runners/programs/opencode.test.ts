/** What OpenCode tells, message by message. */
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled, type HeardWire } from "../../../test/dialect-turn.ts";
import type { Conversation } from "./conversation.ts";
import { openCodeDialect } from "./opencode.ts";

const SESSION = "ses_1";

async function prompted(turn = dialectTurn()): Promise<{
  readonly talk: Conversation;
  readonly wire: HeardWire;
  readonly ended: ReturnType<Conversation["prompt"]>;
}> {
  const wire = heardWire();
  const talk = openCodeDialect.open(wire, turn);
  const answer = async (status: number, body: object): Promise<void> => {
    await settled();
    await talk.receive({ id: wire.sent.findLast(({ id }) => id !== undefined)?.["id"], status, body });
    await settled();
  };
  const ready = talk.begin();
  await talk.receive({ ready: "http://127.0.0.1:1" });
  await answer(200, { id: SESSION });
  await ready;
  const ended = talk.prompt([{ type: "text", text: "hello" }], undefined);
  await answer(204, {});
  return { talk, ended, wire };
}

/** One answer of its model. */
async function step(
  talk: Conversation,
  nth: number,
  { reason, calls }: { reason: string; calls: boolean },
): Promise<void> {
  const messageID = `msg_${nth}`;
  const tell = (type: string, properties: object): Promise<void> =>
    Promise.resolve(talk.receive({ event: { type, properties: { sessionID: SESSION, ...properties } } }));
  const part = (more: object): Promise<void> =>
    tell("message.part.updated", { part: { id: `prt_${nth}`, messageID, sessionID: SESSION, ...more } });
  await tell("message.updated", { info: { id: messageID, role: "assistant", time: { created: 1 } } });
  if (calls) {
    const state = { status: "completed", input: { command: "true" }, output: "", metadata: { exit: 0 } };
    await part({ type: "tool", tool: "bash", callID: `call_${nth}`, state });
  }
  await part({ type: "step-finish", reason, tokens: {}, cost: 0 });
  const finish = { finish: reason, time: { created: 1, completed: 2 } };
  await tell("message.updated", { info: { id: messageID, role: "assistant", ...finish } });
}

test("a model whose answers break off one after the other ends the turn: it would be asked for ever", async () => {
  const { talk, ended } = await prompted();
  for (let nth = 0; nth < 5; nth += 1) await step(talk, nth, { reason: "unknown", calls: false });
  expect(await ended).toMatchObject({ kind: "failed", error: { code: "provider.cut" } });
});

test("answers that say no end are none that break off while they call tools, or are followed by one that ends", async () => {
  const { talk, ended } = await prompted();
  for (let nth = 0; nth < 6; nth += 1) await step(talk, nth, { reason: "unknown", calls: true });
  for (let nth = 6; nth < 10; nth += 1) await step(talk, nth, { reason: "unknown", calls: false });
  await step(talk, 10, { reason: "stop", calls: false });
  await talk.receive({ event: { type: "session.idle", properties: { sessionID: SESSION } } });
  expect(await ended).toMatchObject({ kind: "completed", native: { reason: "stop" } });
});

test("a command that it stopped, and calls completed without an exit code, has not completed", async () => {
  const ends: object[] = [];
  const record = (event: { readonly type: string }): void => void (event.type === "item.completed" && ends.push(event));
  const { talk, ended } = await prompted(dialectTurn({ record }));
  ended.catch(() => undefined);
  const said = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
  const state = {
    status: "completed",
    input: { command: "sleep 300" },
    output: said,
    metadata: { output: "", exit: null },
  };
  const info = { id: "msg_0", role: "assistant", time: { created: 1 } };
  await talk.receive({ event: { type: "message.updated", properties: { sessionID: SESSION, info } } });
  const part = {
    id: "prt_0",
    messageID: "msg_0",
    sessionID: SESSION,
    type: "tool",
    tool: "bash",
    callID: "call_0",
    state,
  };
  await talk.receive({ event: { type: "message.part.updated", properties: { sessionID: SESSION, part } } });
  expect(ends).toMatchObject([{ item: { type: "commandExecution", status: "failed" } }]);
});

const EMPTY = { type: "text", text: "", time: { start: 1 } };

test.each([
  ["in which it was killed before a word was kept is taken out", [{ type: "step-start" }, EMPTY], { created: 1 }, true],
  ["in which it only thought is taken out", [{ type: "reasoning", text: "so" }, EMPTY], { created: 1 }, true],
  ["that has begun a call stays", [{ type: "tool" }], { created: 1 }, false],
  ["of which words were kept stays", [{ type: "text", text: "Half" }], { created: 1 }, false],
  ["that has ended stays", [EMPTY], { created: 1, completed: 2 }, false],
] as const)(
  "when a conversation continues, an answer %s: services refuse empty ones",
  async (_what, parts, time, isOut) => {
    for (const isOfOther of [false, true]) {
      const asked: string[] = [];
      const bodies = new Map<string, unknown>([
        ["POST /session/ses_1/fork", { id: "ses_2" }],
        ["GET /session/ses_1", { id: "ses_1" }],
      ]);
      const talk = openCodeDialect.open(
        {
          async send(message) {
            if (!("method" in message) || !("path" in message) || !("id" in message)) return;
            const request = `${String(message.method)} ${String(message.path)}`;
            asked.push(request);
            const last = [{ info: { id: "msg_9", role: "assistant", time }, parts }];
            const body = request.includes("/message?") ? last : bodies.get(request);
            settled().then(
              () => talk.receive({ id: message.id, status: body === undefined ? 409 : 200, body }),
              unexpected,
            );
          },
          finish: async () => undefined,
        },
        dialectTurn({ changes: { handle: { id: SESSION, isOfOther } } }),
      );
      const begun = talk.begin();
      await talk.receive({ ready: "1.18.33" });
      // Who works on it just now keeps it, and is not waited for.
      expect(await begun).toBe("knows");
      const id = isOfOther ? "ses_2" : SESSION;
      expect(asked.slice(1)).toEqual([
        `GET /session/${id}/message?limit=1`,
        ...(isOut ? [`DELETE /session/${id}/message/msg_9`] : []),
      ]);
    }
  },
);

function unexpected(error: unknown): never {
  throw error;
}

test("a question that was answered in the agent's own interface is taken back, said, and not answered again", async () => {
  const warned: string[] = [];
  const turn = dialectTurn({
    changes: {
      decide: (_question, _act, takenBack) =>
        new Promise((resolve) => takenBack?.addEventListener("abort", () => resolve({ decision: "cancel" }))),
      warn: async (code, message) => void warned.push(`${code} ${message}`),
    },
  });
  const { talk, wire } = await prompted(turn);
  const tell = (type: string, properties: object): Promise<void> =>
    Promise.resolve(talk.receive({ event: { type, properties: { sessionID: SESSION, ...properties } } }));
  await tell("permission.asked", { id: "per_1", permission: "bash", metadata: { command: "ls" } });
  await tell("question.asked", { id: "que_1", questions: [{ question: "which?" }] });
  const sent = wire.sent.length;
  await tell("permission.replied", { requestID: "per_1", reply: "once" });
  await tell("question.rejected", { requestID: "que_1" });
  // An answer from here is told too.
  await tell("permission.replied", { requestID: "per_0", reply: "once" });
  await settled();
  expect([wire.sent.length, warned]).toEqual([
    sent,
    [
      "approval.elsewhere the agent's question was answered in its own interface: once",
      "approval.elsewhere the agent's question was answered in its own interface: answered",
    ],
  ]);
});
