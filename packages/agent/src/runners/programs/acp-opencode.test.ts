/** OpenCode over ACP: what it is told at its start, and what it tells of its calls. */
import type { Item } from "@heddle/protocol";
import { expect, test } from "vitest";
import { dialectTurn, heardWire, settled } from "../../../test/dialect-turn.ts";
import { acpDialect } from "./acp.ts";
import type { RunnerEvent } from "../runner.ts";
import type { Conversation, ProgramTurn } from "./conversation.ts";

async function opened(turn: ProgramTurn): Promise<Conversation> {
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
  return talk;
}

/** The item that comes of a call, told in two parts. */
async function itemOf(call: object, end: object): Promise<Item | undefined> {
  const items: Item[] = [];
  const record = (event: RunnerEvent): void => void (event.type === "item.completed" && items.push(event.item));
  const talk = await opened(dialectTurn({ record }));
  talk.prompt([{ type: "text", text: "hello" }], undefined).catch(() => undefined);
  await settled();
  for (const update of [
    { sessionUpdate: "tool_call", toolCallId: "c1", status: "pending", ...call },
    { sessionUpdate: "tool_call_update", toolCallId: "c1", status: "completed", ...end },
  ])
    await talk.receive({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "ses_1", update } });
  return items[0];
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

test("a command that was stopped has not completed, although it says so", async () => {
  const output = "mark\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
  const rawOutput = { output, metadata: { output: "mark\n", exit: null } };
  const item = await itemOf({ kind: "execute", rawInput: { command: "sleep 300" } }, { rawOutput });
  expect(item).toMatchObject({ type: "commandExecution", status: "failed", output });
});

test("a file that was not there is a new one, with the text that it was given", async () => {
  const rawInput = { filePath: "/home/dev/project/made.txt", content: "one\ntwo\n" };
  const call = { kind: "edit", rawInput, locations: [{ path: rawInput.filePath }] };
  const told = (exists: boolean): object => ({
    content: [{ type: "content", content: { type: "text", text: "Wrote file successfully." } }],
    rawOutput: { output: "Wrote file successfully.", metadata: { exists } },
  });
  const path = rawInput.filePath;
  expect(await itemOf(call, told(false))).toMatchObject({
    type: "fileChange",
    status: "completed",
    changes: [{ path, kind: "add", diff: "one\ntwo\n" }],
  });
  expect(await itemOf(call, told(true))).toMatchObject({ changes: [{ path, kind: "update", diff: "" }] });
});
