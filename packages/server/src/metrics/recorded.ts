/**
 * What is counted from the record as it grows: turns, model requests, tokens and costs, tool calls, tasks. From the first
 * question on, of every process that writes to the store; nothing that was stored before is read.
 */
import type { EventBody, StoredEvent, Usage } from "@heddle/protocol";
import { counter, histogram, type Family } from "./families.ts";

/** Requests without an answer that are remembered: far more than run at once. */
const MAX_OPEN = 10_000;
const TURN_SECONDS = [1, 5, 15, 60, 300, 900, 3_600];
const REQUEST_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 300];

interface OpenRequest {
  readonly turnId: string;
  readonly provider: string;
  readonly model: string;
  readonly at: number;
}

export interface Recorded {
  readonly families: readonly Family[];
  take(event: StoredEvent): void;
}

export function countRecorded(): Recorded {
  const to = begin();
  const open = new Map<string, OpenRequest>();

  function used(provider: string, model: string, { usage, costUsd }: Answered): void {
    const of = { provider, model };
    to.tokens.add({ ...of, kind: "input" }, usage.inputTokens);
    to.tokens.add({ ...of, kind: "cached_input" }, usage.cachedInputTokens);
    to.tokens.add({ ...of, kind: "output" }, usage.outputTokens);
    to.cost.add(of, costUsd ?? 0);
  }

  function endRequests(turnId: string, code: string): void {
    for (const [id, { provider, turnId: of }] of open) {
      if (of !== turnId) continue;
      open.delete(id);
      to.requests.add({ provider, outcome: "failed", code });
    }
  }

  function take({ at, body }: StoredEvent): void {
    switch (body.type) {
      case "model.requested": {
        const [oldest] = open.keys();
        if (open.size >= MAX_OPEN && oldest !== undefined) open.delete(oldest);
        open.set(body.requestId, { turnId: body.turnId, provider: body.provider, model: body.model, at });
        return;
      }
      case "model.retried": {
        const provider = open.get(body.requestId)?.provider;
        if (provider !== undefined) to.requests.add({ provider, outcome: "retried", code: body.cause.code });
        return;
      }
      case "model.responded": {
        const request = open.get(body.requestId);
        if (request === undefined) return;
        open.delete(body.requestId);
        const { provider, model } = request;
        to.requests.add({ provider, outcome: "answered", code: "" });
        to.requestSeconds.observe({ provider }, Math.max(0, at - request.at) / 1_000);
        used(provider, model, body);
        return;
      }
      case "background.ran": {
        const outcome = body.outcome === "ok" ? "answered" : "failed";
        to.requests.add({ provider: body.provider, outcome, code: body.failureCode ?? "" });
        used(body.provider, body.model, body);
        return;
      }
      case "turn.completed":
        endRequests(body.turnId, body.failure?.code ?? "");
        to.turns.add({ status: body.status, code: body.failure?.code ?? "" });
        to.turnSeconds.observe({ status: body.status }, body.durationMs / 1_000);
        return;
      case "tool.settled":
        to.calls.add({ outcome: body.outcome });
        return;
      case "hop.taken":
      case "hop.refused":
        to.hops.add({ outcome: body.type === "hop.taken" ? "taken" : "refused" });
        return;
      case "approval.requested":
      case "approval.resolved":
        to.asked.add({ what: body.type === "approval.requested" ? "asked" : "answered" });
        return;
      case "task.checked":
        for (const { outcome } of body.results) to.checks.add({ outcome });
        return;
      default:
        if (TASK_EVENTS.has(body.type)) to.tasks.add({ event: body.type.slice("task.".length) });
    }
  }

  return {
    families: Object.values(to),
    take,
  };
}

function begin() {
  return {
    turns: counter("heddle_turns_ended_total", "Turns that have ended, by how"),
    turnSeconds: histogram("heddle_turn_seconds", "How long turns took", TURN_SECONDS),
    requests: counter("heddle_model_requests_total", "Requests to models, by provider and outcome"),
    requestSeconds: histogram(
      "heddle_model_request_seconds",
      "From a request to the whole answer, retries included",
      REQUEST_SECONDS,
    ),
    tokens: counter("heddle_tokens_total", "Tokens, by provider, model and kind"),
    cost: counter("heddle_cost_usd_total", "Cost of answers with a known price in US dollars"),
    calls: counter("heddle_tool_calls_total", "Calls of tools that were settled, by outcome"),
    hops: counter("heddle_hops_total", "Changes of envelope that were taken or refused"),
    asked: counter("heddle_approvals_total", "Questions that were asked and answered"),
    tasks: counter("heddle_task_events_total", "Tasks that were created, taken and ended, by what happened"),
    checks: counter("heddle_checks_total", "Checks of tasks, by outcome"),
  };
}

interface Answered {
  readonly usage: Usage;
  readonly costUsd?: number | undefined;
}

const TASK_EVENTS: ReadonlySet<EventBody["type"]> = new Set([
  "task.created",
  "task.taken",
  "task.verified",
  "task.rejected",
  "task.failed",
  "task.retried",
  "task.paused",
  "task.stalled",
  "task.cancelled",
]);
