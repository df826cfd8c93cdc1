import { expect, test } from "vitest";
import { ChatItem, chatItem } from "./items.ts";

test("a call for child threads is shown as a subagent, with the chats that it is about", () => {
  const item = chatItem(
    {
      type: "collabToolCall",
      id: "item",
      callId: "call",
      tool: "wait",
      status: "completed",
      senderThreadId: "parent",
      threadIds: ["child"],
      children: [{ threadId: "child", status: "completed", message: "found" }],
      durationMs: 5,
    },
    "turn",
  );
  expect(ChatItem.parse(item)).toEqual({
    type: "subagent",
    id: "item",
    turn_id: "turn",
    tool: "wait",
    status: "completed",
    chat_ids: ["child"],
    agents: [{ chat_id: "child", status: "completed", message: "found" }],
    duration_ms: 5,
  });
});
