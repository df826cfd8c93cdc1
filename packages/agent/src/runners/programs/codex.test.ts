/** What Codex says of its provider, message by message, as its app-server 0.166 was recorded to say it. */
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled } from "../../../test/dialect-turn.ts";
import { codexDialect } from "./codex.ts";
import type { NativeOutcome } from "./conversation.ts";

const IDS = { threadId: "t1", turnId: "n1" };

/** A turn that its provider refuses: first with a try to come, then for good. */
async function refused(status: number | null): Promise<{ end: NativeOutcome; warned: readonly string[] }> {
  const warned: string[] = [];
  const wire = heardWire();
  const turn = dialectTurn({ changes: { warn: async (code, message) => void warned.push(`${code} ${message}`) } });
  const talk = codexDialect.open(wire, turn);
  const answer = async (result: object): Promise<void> => {
    await settled();
    await talk.receive({ id: wire.sent.findLast(({ id }) => id !== undefined)?.["id"], result });
    await settled();
  };
  const ready = talk.begin();
  await answer({});
  await answer({ thread: { id: "t1" }, model: "m" });
  await ready;
  const prompted = talk.prompt([{ type: "text", text: "hello" }], undefined);
  await answer({ turn: { id: "n1" } });
  const additionalDetails = "unexpected status: invalid key";
  const again = { codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: status } }, additionalDetails };
  const error = { message: "Reconnecting... 1/5", ...again };
  await talk.receive({ method: "error", params: { ...IDS, error, willRetry: true } });
  const last = { message: additionalDetails, codexErrorInfo: { httpConnectionFailed: { httpStatusCode: status } } };
  await talk.receive({
    method: "turn/completed",
    params: { threadId: "t1", turn: { id: "n1", status: "failed", error: last } },
  });
  return { end: await prompted, warned };
}

test.each([
  [401, "auth.rejected", "auth.rejected"],
  [429, "provider.rate-limited", "provider.rate-limited"],
  [503, "provider.overloaded", "provider.overloaded"],
  [null, "provider.unreachable", "provider.cut"],
])("a connection that failed with the status %s ends the turn with %s", async (status, code, retried) => {
  const { end, warned } = await refused(status);
  expect(end).toMatchObject({ kind: "failed", error: { code, message: "codex: unexpected status: invalid key" } });
  expect(warned).toEqual([`${retried} Reconnecting... 1/5: unexpected status: invalid key`]);
});
