import { expect, test } from "vitest";
import { approvalRequest } from "./approvals.ts";

test("H6: a question about a hop names both envelopes and the reason", () => {
  const asked = { kind: "tool", callId: "c", itemId: "i", tool: "hop", reason: "found it" } as const;
  const turn = { threadId: "t", turnId: "u", startedAtMs: 1 };
  const request = approvalRequest({ ...asked, arguments: { from: "explore", to: "edit", carry: { plan: "x" } } }, turn);
  expect(request).toMatchObject({
    method: "mcpServer/elicitation/request",
    params: {
      message: 'Allow this thread to leave the envelope "explore" and enter "edit"?',
      _meta: { tool_name: "hop", reason: "found it", tool_params: { to: "edit" } },
    },
  });
  const odd = approvalRequest({ ...asked, arguments: "edit" }, turn);
  expect(odd).toMatchObject({ params: { message: 'Allow the heddle MCP server to run tool "hop"?' } });
});
