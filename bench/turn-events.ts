/** The events of a short turn, to be written straight into a record: playing thousands of them would take an hour. */
import { newItemId, newTurnId, NO_USAGE, type EventBody, type TurnSettings } from "@heddle/protocol";

const SETTINGS: TurnSettings = {
  provider: "mock",
  model: "gpt-5.5",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};

export function turnEvents(): EventBody[] {
  const turnId = newTurnId();
  const input = [{ type: "text" as const, text: "say hello" }];
  const asked = { type: "userMessage" as const, id: newItemId(), content: input };
  const answered = { type: "agentMessage" as const, id: newItemId(), text: "hello ".repeat(40) };
  const holder = { pid: 1, startTicks: "1", bootId: "bench", pidNamespace: "bench" };
  return [
    { type: "turn.admitted", v: 1, turnId, input, settings: SETTINGS, holder },
    { type: "item.started", v: 1, turnId, item: asked },
    { type: "item.completed", v: 1, turnId, item: asked },
    { type: "item.started", v: 1, turnId, item: answered },
    {
      type: "model.responded",
      v: 1,
      turnId,
      requestId: newItemId(),
      output: [{ kind: "text", text: answered.text }],
      stopReason: "stop",
      usage: NO_USAGE,
    },
    { type: "item.completed", v: 1, turnId, item: answered },
    { type: "turn.completed", v: 1, turnId, status: "completed", usage: NO_USAGE, durationMs: 1 },
  ];
}
