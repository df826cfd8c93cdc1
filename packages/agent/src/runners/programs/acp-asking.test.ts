/** Agents that speak ACP, and whether it is certain that they ask. */
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled } from "../../../test/dialect-turn.ts";
import { acpDialect } from "./acp.ts";
import type { ProgramTurn } from "./conversation.ts";

async function opened(turn: ProgramTurn): Promise<void> {
  const wire = heardWire();
  const talk = acpDialect.open(wire, turn);
  const begun = talk.begin();
  begun.catch(() => undefined);
  for (const result of [
    { protocolVersion: 1, agentInfo: { name: "OpenCode", version: "1.18.33" }, agentCapabilities: {} },
    { sessionId: "ses_1" },
  ]) {
    await settled();
    await talk.receive({ jsonrpc: "2.0", id: wire.sent.at(-1)?.["id"], result });
  }
  await begun;
}

test("OpenCode is told to ask before it acts, whatever its own settings allow", () => {
  const { OPENCODE_PERMISSION = "" } = acpDialect.launch(dialectTurn()).variables;
  expect(JSON.parse(OPENCODE_PERMISSION)).toMatchObject({ "*": "ask", bash: "ask", edit: "ask", read: "allow" });
});

test("but an agent of its configuration may allow itself more, so a turn that depends on questions is refused", async () => {
  const declared: Record<string, boolean> = {};
  const turn = dialectTurn({ changes: { declared: (found) => void Object.assign(declared, found) } });
  await opened(turn);
  expect(declared).toMatchObject({ asksFirst: false, approvals: false });
  for (const more of [{ approval: "untrusted" }, { approval: "on-request", sandbox: "off" }] as const) {
    const envelope = { ...turn.envelope, ...more };
    await expect(opened({ ...turn, envelope })).rejects.toMatchObject({ code: "runner.unsupported" });
  }
});
