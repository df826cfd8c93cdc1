/** What a run did, for programs that look at it afterwards: two documents made from its stored events, and from nothing else. */
import { createHash } from "node:crypto";
import { canonical, type EventBody, type Item, type StoredEvent } from "@heddle/protocol";

/** Everything that was said and done, in order, as it is on record. */
export function transcriptOf(events: readonly StoredEvent[]): object {
  return {
    type: "heddle.run.transcript",
    version: 1,
    items: events.flatMap(({ at, body }) =>
      body.type === "item.completed" ? [{ at: iso(at), turn_id: body.turnId, item: body.item }] : [],
    ),
  };
}

export function reportOf(events: readonly StoredEvent[]): object {
  return {
    type: "heddle.run.report",
    version: 1,
    requests: requestsOf(events),
    tools: toolsOf(events),
    policy: policyOf(events),
    retries: events.flatMap(({ at, body }) =>
      body.type === "model.retried"
        ? [
            {
              at: iso(at),
              request_id: body.requestId,
              attempt: body.attempt,
              delay_ms: body.delayMs,
              cause: body.cause,
            },
          ]
        : [],
    ),
    failures: events.flatMap(({ at, body }) => failureIn(at, body)),
    context: events.flatMap(({ at, body }) => contextIn(at, body)),
  };
}

function requestsOf(events: readonly StoredEvent[]): object[] {
  const begun = new Map<string, number>();
  const requests: object[] = [];
  for (const { at, body } of events) {
    if (body.type === "model.requested" && !begun.has(body.requestId)) begun.set(body.requestId, at);
    if (body.type !== "model.responded") continue;
    const startedAt = begun.get(body.requestId) ?? at;
    requests.push({
      request_id: body.requestId,
      purpose: body.purpose ?? "conversation",
      started_at: iso(startedAt),
      duration_ms: at - startedAt,
      stop_reason: body.stopReason,
      usage: body.usage,
      cost_usd: body.costUsd ?? null,
    });
  }
  return requests;
}

/** Inputs as digests: the record has them whole, a report is passed around. */
function toolsOf(events: readonly StoredEvent[]): object[] {
  const intents = new Map<string, { at: number; digest: string; isReadOnly: boolean }>();
  const tools: object[] = [];
  for (const { at, body } of events) {
    if (body.type === "tool.intended") {
      const digest = sha256(canonical(body.arguments ?? null));
      intents.set(body.callId, { at, digest, isReadOnly: body.isReadOnly });
    }
    if (body.type !== "tool.settled") continue;
    const intent = intents.get(body.callId);
    intents.delete(body.callId);
    tools.push({
      call_id: body.callId,
      tool: body.tool,
      started_at: intent === undefined ? null : iso(intent.at),
      ended_at: iso(at),
      input_sha256: intent?.digest ?? null,
      is_read_only: intent?.isReadOnly ?? null,
      decision: body.outcome === "denied" ? "denied" : "allowed",
      outcome: intent === undefined ? "not-run" : body.outcome,
      ...(body.failure === undefined ? {} : { failure: body.failure }),
    });
  }
  return tools;
}

function policyOf(events: readonly StoredEvent[]): object[] {
  return events.flatMap(({ at, author, body }): object[] => {
    switch (body.type) {
      case "approval.requested":
        return [{ at: iso(at), kind: "asked", approval_id: body.approvalId, question: body.question.kind }];
      case "approval.resolved":
        return [
          {
            at: iso(at),
            kind: "answered",
            approval_id: body.approvalId,
            decision: body.decision,
            by: author,
            ...(body.reason === undefined ? {} : { reason: body.reason }),
          },
        ];
      case "path.violated":
        return [{ at: iso(at), kind: "violation", path: body.path, quarantined_to: body.quarantinedTo ?? null }];
      case "hook.ran":
        return body.outcome === "blocked"
          ? [{ at: iso(at), kind: "hook", event: body.event, reason: body.reason ?? null }]
          : [];
      default:
        return [];
    }
  });
}

function failureIn(at: number, body: EventBody): object[] {
  if (body.type === "turn.completed" && body.failure !== undefined) {
    return [{ at: iso(at), kind: "turn", turn_id: body.turnId, ...body.failure }];
  }
  if (body.type === "tool.settled" && body.failure !== undefined) {
    return [{ at: iso(at), kind: "tool", call_id: body.callId, tool: body.tool, ...body.failure }];
  }
  if (body.type === "item.completed") return noticeIn(at, body.item);
  return [];
}

function noticeIn(at: number, item: Item): object[] {
  if (item.type !== "notice") return [];
  return [{ at: iso(at), kind: "notice", level: item.level, code: item.code, message: item.message }];
}

function contextIn(at: number, body: EventBody): object[] {
  if (body.type === "context.loaded") return [{ at: iso(at), kind: "loaded", sources: body.sources }];
  if (body.type !== "context.compacted") return [];
  const { trigger, tokensBefore, tokensAfter } = body;
  return [{ at: iso(at), kind: "compacted", trigger, tokens_before: tokensBefore, tokens_after: tokensAfter }];
}

/** Whole outputs that did not fit into the record: by their hash, in older events as a path. */
export function outputsOf(
  events: readonly StoredEvent[],
): readonly { readonly callId: string; readonly blob: string | undefined; readonly file: string | undefined }[] {
  return events.flatMap(({ body }) => {
    if (body.type !== "item.completed" || body.item.type !== "commandExecution") return [];
    const { callId, outputBlob: blob, outputFile: file } = body.item;
    return blob === undefined && file === undefined ? [] : [{ callId, blob, file }];
  });
}

export function sha256(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
