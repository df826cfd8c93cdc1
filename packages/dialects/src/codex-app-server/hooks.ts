/** A run of a hook as the original sends it: when it starts and when it ends; Heddle stores its end. */
import type { EventOf, StoredEvent } from "@heddle/protocol";
import type { CodexNotification } from "./shapes.ts";

export function hookRun(stored: StoredEvent, body: EventOf<"hook.ran">): readonly CodexNotification[] {
  const { stream: threadId, at, id } = stored;
  const { turnId, event } = body;
  const startedAt = at - Math.round(body.durationMs);
  const run = {
    id,
    eventName: `${event.slice(0, 1).toLowerCase()}${event.slice(1)}`,
    handlerType: "command",
    executionMode: "sync",
    scope: event === "SessionStart" || event === "SessionEnd" ? "thread" : "turn",
    sourcePath: "config.toml",
    source: "user",
    displayOrder: 0,
    startedAt,
  };
  const running = { ...run, status: "running", statusMessage: null, completedAt: null, durationMs: null, entries: [] };
  const ended = {
    ...run,
    status: body.outcome === "ok" ? "completed" : body.outcome,
    statusMessage: body.reason ?? body.failure?.message ?? null,
    completedAt: at,
    durationMs: Math.round(body.durationMs),
    entries: entriesOf(body),
    command: body.command,
  };
  return [
    { method: "hook/started", params: { threadId, turnId, run: running } },
    { method: "hook/completed", params: { threadId, turnId, run: ended } },
  ];
}

function entriesOf({
  reason,
  failure,
  outcome,
  output,
}: EventOf<"hook.ran">): readonly Readonly<Record<string, string>>[] {
  if (failure !== undefined) return [{ kind: "error", text: failure.message }];
  if (reason !== undefined) return [{ kind: "stop", text: reason }];
  return outcome === "ok" && output.trim() !== "" ? [{ kind: "context", text: output }] : [];
}
