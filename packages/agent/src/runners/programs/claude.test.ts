/** Quirks of Claude Code, message by message. */
import { builtInEnvelope, resolveEnvelope } from "@heddle/tools";
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled, type HeardWire } from "../../../test/dialect-turn.ts";
import { claudeDialect, createClaudeDialect } from "./claude.ts";
import { ConversationLost, type Conversation, type Dialect, type ProgramTurn } from "./conversation.ts";

const HELLO = [{ type: "text", text: "hello" }] as const;
const MORE = [{ type: "text", text: "more" }] as const;
const DONE = { type: "result", subtype: "success", is_error: false, terminal_reason: "completed" };

async function begun(
  turn: ProgramTurn,
  dialect: Dialect = claudeDialect,
): Promise<{ readonly wire: HeardWire; readonly talk: Conversation }> {
  const wire = heardWire();
  const talk = dialect.open(wire, turn);
  const ready = talk.begin();
  await settled();
  const [request] = wire.sent;
  await talk.receive({
    type: "control_response",
    response: { subtype: "success", request_id: request?.["request_id"], response: {} },
  });
  await ready;
  return { wire, talk };
}

test("is never started in a mode that allows everything, which it refuses as root", () => {
  const turn = dialectTurn();
  for (const name of ["explore", "edit", "full"]) {
    const envelope = resolveEnvelope(builtInEnvelope(name), {
      workspace: turn.workspace,
      writableRoots: [],
      networkAccess: true,
      networkHosts: undefined,
      approval: "never",
      masked: [],
      mcpServers: [],
      isWatched: false,
      hasClientTools: false,
    });
    const { args } = claudeDialect.launch({ ...turn, envelope });
    expect(args[args.indexOf("--permission-mode") + 1]).toBe("default");
    expect(args.join(" ")).not.toMatch(/bypass|dangerously/);
  }
});

test("ends with the first result where it says nothing of its queue", async () => {
  const { talk } = await begun(dialectTurn());
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  await talk.receive(DONE);
  expect(await prompted).toMatchObject({ kind: "completed", native: { reason: "completed" } });
});

test("goes on after a result as long as it says that more is queued, and gives back what it never takes up", async () => {
  const { talk, wire } = await begun(dialectTurn());
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const told = (state: string): Promise<void> =>
    talk.receive({ type: "command_lifecycle", command_uuid: wire.sent.at(-1)?.["uuid"], state });
  await told("queued");
  await told("started");
  expect(await talk.steer(MORE)).toBe(true);
  await told("queued");
  let isOver = false;
  const over = prompted.then((outcome) => {
    isOver = true;
    return outcome;
  });
  await talk.receive(DONE);
  await settled();
  expect(isOver).toBe(false);
  await told("started");
  await talk.receive(DONE);
  expect(await over).toMatchObject({ kind: "completed" });
  expect(await over).not.toHaveProperty("untaken");
});

test("takes the last result for the end when nothing of its queue is taken up in time", async () => {
  const { talk, wire } = await begun(dialectTurn(), createClaudeDialect(20));
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  await talk.receive({ type: "command_lifecycle", command_uuid: wire.sent.at(-1)?.["uuid"], state: "started" });
  expect(await talk.steer(MORE)).toBe(true);
  await talk.receive(DONE);
  expect(await prompted).toMatchObject({ kind: "completed", untaken: MORE });
});

test("takes no input once its turn is over, so that none reaches the next one", async () => {
  const { talk, wire } = await begun(dialectTurn());
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  await talk.receive(DONE);
  await prompted;
  const before = wire.sent.length;
  expect(await talk.steer(MORE)).toBe(false);
  expect(wire.sent).toHaveLength(before);
});

test("says that it has forgotten a conversation that it does not find", async () => {
  const wire = heardWire();
  const handle = { id: "5e0b9d0a-0000-4000-8000-000000000000", isOfOther: false };
  const talk = claudeDialect.open(wire, dialectTurn({ changes: { handle } }));
  const ready = talk.begin();
  ready.catch(() => undefined);
  await settled();
  await talk.receive({
    type: "result",
    subtype: "error_during_execution",
    is_error: true,
    errors: [`No conversation found with session ID: ${handle.id}`],
  });
  await expect(ready).rejects.toBeInstanceOf(ConversationLost);
});

test("says of every request that its provider refused why, and when it is sent again", async () => {
  const warned: string[] = [];
  const { talk } = await begun(
    dialectTurn({ changes: { warn: async (code, message) => void warned.push(`${code} ${message}`) } }),
  );
  const retry = { type: "system", subtype: "api_retry", attempt: 1, max_retries: 10, retry_delay_ms: 501 };
  await talk.receive({ ...retry, error_status: 401, error: "authentication_failed" });
  await talk.receive({ ...retry, attempt: 2, retry_delay_ms: 1072, error_status: 529, error: "overloaded" });
  await talk.receive({ ...retry, attempt: 3, retry_delay_ms: 2200, error_status: null, error: "unknown" });
  const failed = "claude: the request to its model failed:";
  expect(warned).toEqual([
    `auth.rejected ${failed} authentication_failed, status 401; it asks again in 0.5 s (1 of 10)`,
    `provider.overloaded ${failed} overloaded, status 529; it asks again in 1.1 s (2 of 10)`,
    `provider.unreachable ${failed} unknown; it asks again in 2.2 s (3 of 10)`,
  ]);
});

test("takes a request that got no whole answer for a provider that cannot be reached", async () => {
  const { talk } = await begun(dialectTurn());
  const prompted = talk.prompt(HELLO, undefined);
  await settled();
  const text = "API Error: the stream ended before it was complete";
  const end = { ...DONE, is_error: true, terminal_reason: "api_error", api_error_status: null, result: text };
  await talk.receive(end);
  expect(await prompted).toMatchObject({ kind: "failed", error: { code: "provider.unreachable" } });
});
