/** What clients are sent about a thread as a whole; what is stored of it, whether they follow it or not. */
import type { McpState, StoredEvent } from "@heddle/protocol";
import type { CodexNotification } from "./shapes.ts";

export function threadNews({ stream: threadId, version: seq, body }: StoredEvent): readonly CodexNotification[] {
  switch (body.type) {
    case "thread.named":
      return [{ method: "thread/name/updated", params: { threadId, threadName: body.name, seq } }];
    case "thread.archived":
      if (!body.isArchived) return [{ method: "thread/unarchived", params: { threadId, seq } }];
      return [
        { method: "thread/status/changed", params: { threadId, status: { type: "notLoaded" }, seq } },
        { method: "thread/archived", params: { threadId, seq } },
      ];
    case "thread.attachment-changed": {
      const { attachmentId, attachmentType, identityKey, payload } = body;
      const operation = payload === undefined ? "deleted" : "created";
      const params = { threadId, attachmentType, identityKey, attachmentId, operation, seq };
      return [{ method: "thread/attachment/updated", params }];
    }
    case "thread.deleted":
      return [{ method: "thread/deleted", params: { threadId, seq } }];
    default:
      return [];
  }
}

/** How the start of one of its MCP servers goes, for whoever follows the thread. */
export function mcpStartup(threadId: string, state: McpState): CodexNotification {
  const { server: name, status } = state;
  const error = state.status === "failed" ? state.error : null;
  return { method: "mcpServer/startupStatus/updated", params: { threadId, name, status, error, failureReason: null } };
}
