/**
 * One thread live: stored events and deltas in, what clients are told out, in the order of the original. Fed with the past
 * of a thread first (and its answers thrown away) it knows the totals, the running turn and the open questions.
 */
import type { ApprovalQuestion } from "../../approvals.ts";
import type { EventOf, StoredEvent } from "../../events.ts";
import type { Item, ItemDelta } from "../../items.ts";
import type { Usage } from "../../model-output.ts";
import { addUsage, NO_USAGE } from "../../usage.ts";
import { approvalRequest, askedItem } from "./approvals.ts";
import { createDeltas } from "./deltas.ts";
import { retryError, turnError } from "./errors.ts";
import { codexItem } from "./items.ts";
import type { CodexNotification, CodexThreadItem, CodexThreadStatus, Outgoing } from "./shapes.ts";
import { endError, newTurn, seconds } from "./turns.ts";

export interface ThreadDialect {
  event(event: StoredEvent): readonly Outgoing[];
  delta(delta: ItemDelta): readonly Outgoing[];
  readonly status: CodexThreadStatus;
  /** The turn that has no end yet. */
  readonly activeTurnId: string | undefined;
}

export interface ThreadDialectOptions {
  readonly threadId: string;
  /** The model's window, where it is known. */
  contextWindow(model: string): number | undefined;
}

interface ActiveTurn {
  readonly id: string;
  readonly model: string;
  readonly contextTokens: number | undefined;
  startedAtMs: number;
  isAnnounced: boolean;
  /** When each running item began. */
  readonly items: Map<string, number>;
  readonly questions: Map<string, ApprovalQuestion>;
  /** What the model wrote for each call, to show what is asked about. */
  readonly calls: Map<string, string>;
  readonly diffs: string[];
  lastMessage: CodexThreadItem | undefined;
}

export function threadDialect(options: ThreadDialectOptions): ThreadDialect {
  const { threadId } = options;
  const deltas = createDeltas(threadId);
  let turn: ActiveTurn | undefined;
  let hasFailed = false;
  let total: Usage = NO_USAGE;
  let last: Usage | undefined;

  const status = (): CodexThreadStatus => {
    if (turn !== undefined && turn.isAnnounced) {
      return { type: "active", activeFlags: turn.questions.size > 0 ? ["waitingOnApproval"] : [] };
    }
    return { type: hasFailed ? "systemError" : "idle" };
  };

  /** Everything of one stored event carries its place in the thread. */
  function told(seq: number) {
    const followers = (method: string, params: Record<string, unknown>): Outgoing => ({
      kind: "notify",
      to: "followers",
      notification: { method, params: { ...params, seq } },
    });
    const changed = (): Outgoing => ({
      kind: "notify",
      to: "everyone",
      notification: { method: "thread/status/changed", params: { threadId, status: status(), seq } },
    });
    return { followers, changed };
  }

  /** The original tells what a request took when its calls are over, not when it is answered. */
  function takeUsage(seq: number): readonly Outgoing[] {
    if (last === undefined || turn === undefined) return [];
    const tokenUsage = {
      total: breakdown(total),
      last: breakdown(last),
      modelContextWindow: turn.contextTokens ?? options.contextWindow(turn.model) ?? null,
    };
    last = undefined;
    return [told(seq).followers("thread/tokenUsage/updated", { threadId, turnId: turn.id, tokenUsage })];
  }

  function begin({ version, at }: StoredEvent): readonly Outgoing[] {
    if (turn === undefined || turn.isAnnounced) return [];
    turn.isAnnounced = true;
    turn.startedAtMs = at;
    hasFailed = false;
    const { followers, changed } = told(version);
    return [changed(), followers("turn/started", { threadId, turn: newTurn(turn.id, at) })];
  }

  function itemStarted(item: Item, { version, at }: StoredEvent): readonly Outgoing[] {
    if (turn === undefined || turn.items.has(item.id)) return [];
    turn.items.set(item.id, at);
    const shown = codexItem(item, { startedAtMs: at, completedAtMs: null });
    if (shown === undefined) return [];
    const usage = item.type === "userMessage" ? takeUsage(version) : [];
    const params = { item: shown, threadId, turnId: turn.id, startedAtMs: at };
    return [...usage, told(version).followers("item/started", params), ...deltas.started(item)];
  }

  function itemCompleted(item: Item, event: StoredEvent): readonly Outgoing[] {
    if (turn === undefined) return [];
    const { version, at } = event;
    const { followers } = told(version);
    const begun = turn.items.has(item.id) ? [] : itemStarted(item, event);
    const startedAtMs = turn.items.get(item.id) ?? at;
    turn.items.delete(item.id);
    deltas.completed(item.id);
    const shown = codexItem(item, { startedAtMs, completedAtMs: at });
    if (shown === undefined) return toldOtherwise(item, turn.id).map(({ method, params }) => followers(method, params));
    if (shown.type === "agentMessage" && shown["isPartial"] !== true) turn.lastMessage = shown;
    const done = followers("item/completed", { item: shown, threadId, turnId: turn.id, completedAtMs: at });
    return [...begun, done, ...diffOf(item, turn).map((diff) => followers("turn/diff/updated", diff))];
  }

  /** Items that the original has other words for. */
  function toldOtherwise(item: Item, turnId: string): readonly CodexNotification[] {
    if (item.type === "notice") return [{ method: "warning", params: { threadId, message: item.message } }];
    if (item.type !== "plan" || item.status !== "completed") return [];
    const plan = item.steps.map(({ text, status: state }) => ({ step: text, status: state }));
    return [{ method: "turn/plan/updated", params: { threadId, turnId, explanation: item.explanation ?? null, plan } }];
  }

  function diffOf(item: Item, active: ActiveTurn): readonly Record<string, unknown>[] {
    if (item.type !== "fileChange" || item.status !== "completed") return [];
    active.diffs.push(...item.changes.map(({ diff }) => diff));
    return [{ threadId, turnId: active.id, diff: active.diffs.join("\n") }];
  }

  function asked(body: EventOf<"approval.requested">, event: StoredEvent): readonly Outgoing[] {
    if (turn === undefined) return [];
    const { approvalId, question } = body;
    turn.questions.set(approvalId, question);
    const { changed } = told(event.version);
    const item = askedItem(question, turn.calls.get(question.callId));
    const place = { threadId, turnId: turn.id, startedAtMs: event.at };
    return [
      changed(),
      ...(item === undefined ? [] : itemStarted(item, event)),
      { kind: "ask", approvalId, request: approvalRequest(question, place) },
    ];
  }

  function resolved({ approvalId }: EventOf<"approval.resolved">, { version }: StoredEvent): readonly Outgoing[] {
    if (turn?.questions.delete(approvalId) !== true) return [];
    return [{ kind: "resolved", approvalId }, told(version).changed()];
  }

  function end(body: EventOf<"turn.completed">, event: StoredEvent): readonly Outgoing[] {
    if (turn === undefined) return [];
    const { version, at } = event;
    const { followers, changed } = told(version);
    const before = [...begin(event), ...takeUsage(version)];
    const ended = turn;
    turn = undefined;
    deltas.reset();
    hasFailed = body.status === "failed";
    const items = body.status === "completed" && ended.lastMessage !== undefined ? [ended.lastMessage] : [];
    const failure = body.status === "failed" && body.failure !== undefined ? turnError(body.failure) : undefined;
    return [
      ...before,
      changed(),
      ...(failure === undefined
        ? []
        : [followers("error", { error: failure, willRetry: false, threadId, turnId: ended.id })]),
      followers("turn/completed", {
        threadId,
        turn: {
          ...newTurn(ended.id, ended.startedAtMs),
          items,
          itemsView: items.length > 0 ? "summary" : "notLoaded",
          status: body.status,
          error: endError(body),
          completedAt: seconds(at),
          durationMs: body.durationMs,
          ...(body.costUsd === undefined ? {} : { costUsd: body.costUsd }),
        },
      }),
    ];
  }

  function event(stored: StoredEvent): readonly Outgoing[] {
    const { body, version } = stored;
    const { followers } = told(version);
    switch (body.type) {
      case "turn.admitted":
        turn = admitted(body, stored.at);
        return [];
      case "turn.started":
        return begin(stored);
      case "item.started":
        return itemStarted(body.item, stored);
      case "item.completed":
        return itemCompleted(body.item, stored);
      case "model.requested":
        return takeUsage(version);
      case "model.responded":
        for (const part of body.output) if (part.kind === "toolCall") turn?.calls.set(part.callId, part.input);
        total = addUsage(total, body.usage);
        last = body.usage;
        return [];
      case "model.retried": {
        const error = retryError(body.cause, body);
        return [followers("error", { error, willRetry: true, threadId, turnId: body.turnId })];
      }
      case "approval.requested":
        return asked(body, stored);
      case "approval.resolved":
        return resolved(body, stored);
      case "path.violated":
        return [followers("warning", { threadId, message: `a protected path was written: ${body.path}` })];
      case "hook.ran": {
        const why = body.failure?.message;
        return why === undefined
          ? []
          : [followers("warning", { threadId, message: `a ${body.event} hook failed: ${why}` })];
      }
      case "mcp.listed":
        return [
          followers("mcpServer/startupStatus/updated", {
            threadId,
            name: body.server,
            status: "ready",
            error: null,
            failureReason: null,
          }),
        ];
      case "turn.completed":
        return end(body, stored);
      default:
        return [];
    }
  }

  return {
    event,
    delta: (delta) => deltas.delta(delta),
    get status() {
      return status();
    },
    get activeTurnId() {
      return turn?.id;
    },
  };
}

function admitted({ turnId, settings }: EventOf<"turn.admitted">, at: number): ActiveTurn {
  return {
    id: turnId,
    model: settings.model,
    contextTokens: settings.contextTokens,
    startedAtMs: at,
    isAnnounced: false,
    items: new Map(),
    questions: new Map(),
    calls: new Map(),
    diffs: [],
    lastMessage: undefined,
  };
}

function breakdown(usage: Usage): Record<string, number> {
  return {
    totalTokens: usage.inputTokens + usage.outputTokens,
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens,
    cacheWriteInputTokens: usage.cacheWriteInputTokens,
    outputTokens: usage.outputTokens,
    reasoningOutputTokens: usage.reasoningOutputTokens,
  };
}
