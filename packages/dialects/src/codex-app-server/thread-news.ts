/** What every client is sent about a thread as a whole, whether it follows it or not. */
import type { StoredEvent } from "@heddle/protocol";
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
