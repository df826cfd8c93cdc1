/**
 * One chat as a list of events: stored events and deltas in, events for subscribers out. They are numbered densely from 1 in
 * the stream of the thread, so that every reader counts the same.
 */
import {
  NO_USAGE,
  addUsage,
  grownItem,
  isRetryable,
  isShownOtherwise,
  isUser,
  type ApprovalQuestion,
  type Author,
  type Decision,
  type EventOf,
  type Failure,
  type Item,
  type ItemDelta,
  type StoredEvent,
  type Usage,
} from "@heddle/protocol";
import { tokenBreakdown } from "../thread-usage.ts";
import type { ChatEvent, ChatParamsOf, ChatTopic } from "./events.ts";
import { chatItem, inputText } from "./items.ts";
import type { ChatSettings } from "./settings.ts";

type Unnumbered<Topic extends ChatTopic = ChatTopic> = Topic extends ChatTopic
  ? {
      readonly topic: Topic;
      readonly params: Omit<ChatParamsOf<Topic>, BaseKey> & { turnId?: string; itemId?: string };
    }
  : never;
type BaseKey = "seq" | "ts" | "chat_id" | "threadId" | "schema" | "live" | "turnId" | "itemId";

/** Where a log begins that does not begin with its thread: before a turn. */
export interface ChatLogStart {
  readonly seq: number;
  readonly version: number;
  readonly usage: Usage;
  /** Of its settings, oldest first. */
  readonly changes: readonly Readonly<Record<string, unknown>>[];
}

export interface ChatLogOptions {
  readonly threadId: string;
  readonly start?: ChatLogStart;
  /** The model's window, where it is known. */
  readonly contextWindow?: (model: string) => number | undefined;
}

export class ChatLog {
  readonly #options: ChatLogOptions;
  #seq = 0;
  #version = 0;
  #turnId: string | undefined;
  #window: number | null = null;
  #total: Usage = NO_USAGE;
  #settings: ChatSettings = {};
  #diffs: string[] = [];
  /** Running items by id, with the section of the summary that is being written. */
  readonly #items = new Map<string, { item: Item; section: number }>();
  readonly #approvals = new Map<string, ChatEvent>();

  constructor(options: ChatLogOptions) {
    this.#options = options;
    const { start } = options;
    if (start === undefined) return;
    this.#seq = start.seq;
    this.#version = start.version;
    this.#total = start.usage;
    for (const changes of start.changes) this.#settings = merged(this.#settings, changes);
  }

  /** How many events there have been. */
  get lastSeq(): number {
    return this.#seq;
  }

  /** The last version of the thread that was taken in. */
  get version(): number {
    return this.#version;
  }

  get activeTurnId(): string | undefined {
    return this.#turnId;
  }

  /** Questions without an answer, as they were sent. */
  get pendingApprovals(): readonly ChatEvent[] {
    return [...this.#approvals.values()];
  }

  get usage(): Usage {
    return this.#total;
  }

  event(stored: StoredEvent): readonly ChatEvent[] {
    this.#version = stored.version;
    const ts = new Date(stored.at).toISOString();
    const events = this.#translate(stored).map((event) => this.#numbered(event, ts));
    if (stored.body.type === "approval.requested" && events[0] !== undefined) {
      this.#approvals.set(stored.body.approvalId, events[0]);
    }
    return events;
  }

  /** Live only: nothing of it is numbered. It comes after the stored beginning of its item. */
  delta(delta: ItemDelta): readonly ChatEvent[] {
    const item = this.#items.get(delta.itemId);
    return item === undefined ? [] : this.#deltaOf(item, delta);
  }

  /** A running item at a checkpoint, for clients that missed its deltas. Live only. */
  updated({ turnId, itemId }: EventOf<"item.checkpointed">): readonly ChatEvent[] {
    const open = this.#items.get(itemId);
    if (open === undefined || isShownOtherwise(open.item)) return [];
    const item = chatItem(open.item, turnId);
    const base = { seq: this.#seq, ts: new Date().toISOString(), live: true } as const;
    return [this.#withBase({ topic: "chat.item.updated", params: { turnId, itemId, item } }, base)];
  }

  #numbered(event: Unnumbered, ts: string): ChatEvent {
    this.#seq += 1;
    return this.#withBase(event, { seq: this.#seq, ts });
  }

  #withBase(
    { topic, params }: Unnumbered,
    base: { readonly seq: number; readonly ts: string; readonly live?: true },
  ): ChatEvent {
    const { threadId } = this.#options;
    // Every member of `Unnumbered` fits its topic; only the base fields are missing.
    return { topic, params: { ...base, chat_id: threadId, threadId, schema: 1, ...params } } as ChatEvent;
  }

  #deltaOf(open: { readonly item: Item; section: number }, given: ItemDelta): readonly ChatEvent[] {
    const { turnId, itemId, channel, delta } = given;
    const at = { turnId, itemId, delta };
    const live = (event: Unnumbered): ChatEvent[] => [
      this.#withBase(event, { seq: this.#seq, ts: new Date().toISOString(), live: true }),
    ];
    switch (channel) {
      case "text":
        return live({ topic: "chat.message.delta", params: at });
      case "output":
        return open.item.type === "fileChange"
          ? live({ topic: "chat.file.output", params: at })
          : live({ topic: "chat.command.output", params: { ...at, stream: "output" } });
      case "reasoningText":
        return live({ topic: "chat.reasoning.delta", params: at });
      case "reasoningSummary": {
        const isNext = open.section < 0 || delta.startsWith("\n\n");
        const text = open.section >= 0 && isNext ? delta.slice(2) : delta;
        if (isNext) open.section += 1;
        return live({ topic: "chat.reasoning.delta", params: { ...at, delta: text, summary_index: open.section } });
      }
    }
  }

  #translate(stored: StoredEvent): readonly Unnumbered[] {
    const { body } = stored;
    switch (body.type) {
      case "turn.queued": {
        const turn = { id: body.turnId, status: "queued" } as const;
        return [{ topic: "chat.turn.queued", params: { turnId: body.turnId, turn, message: inputText(body.input) } }];
      }
      case "turn.dequeued":
        return [ended(body.turnId, endStatus(body.failure), body.failure)];
      case "turn.admitted":
        return this.#begun(body);
      case "turn.completed":
        return this.#ended(body);
      case "item.started":
        return this.#itemStarted(body);
      case "item.checkpointed": {
        const open = this.#items.get(body.itemId);
        if (open !== undefined) open.item = grownItem(open.item, body.appended);
        return [];
      }
      case "item.completed":
        return this.#itemCompleted(body);
      case "model.responded":
        return this.#used(body);
      case "approval.requested":
        return [asked(body)];
      case "approval.resolved":
        this.#approvals.delete(body.approvalId);
        return [answered(body, stored.author)];
      case "thread.settings-changed":
        this.#settings = merged(this.#settings, body.changes);
        return [{ topic: "chat.thread.updated", params: { settings: this.#settings } }];
      default:
        return besides(stored);
    }
  }

  #begun({ turnId, settings }: EventOf<"turn.admitted">): readonly Unnumbered[] {
    this.#turnId = turnId;
    this.#diffs = [];
    this.#window = settings.contextTokens ?? this.#options.contextWindow?.(settings.model) ?? null;
    return [{ topic: "chat.turn.started", params: { turnId, turn: { id: turnId, status: "running" } } }];
  }

  #ended(body: EventOf<"turn.completed">): readonly Unnumbered[] {
    this.#turnId = undefined;
    this.#items.clear();
    this.#approvals.clear();
    const event = ended(body.turnId, body.status, body.failure);
    const cost = body.costUsd === undefined ? {} : { cost_usd: body.costUsd };
    return [
      { ...event, params: { ...event.params, usage: tokensOf(body.usage), ...cost, duration_ms: body.durationMs } },
    ];
  }

  #itemStarted({ turnId, item }: EventOf<"item.started">): readonly Unnumbered[] {
    this.#items.set(item.id, { item, section: -1 });
    if (isShownOtherwise(item)) return [];
    return [{ topic: "chat.item.started", params: { turnId, itemId: item.id, item: chatItem(item, turnId) } }];
  }

  #itemCompleted({ turnId, item }: EventOf<"item.completed">): readonly Unnumbered[] {
    this.#items.delete(item.id);
    const at = { turnId, itemId: item.id };
    const shown = chatItem(item, turnId);
    if (item.type === "notice") {
      return [{ topic: "chat.warning", params: { ...at, message: item.message, code: item.code } }];
    }
    if (item.type === "plan") {
      if (item.status !== "completed") return [];
      const plan = item.steps.map(({ text, status }) => ({ step: text, status }));
      const why = item.explanation === undefined ? {} : { explanation: item.explanation };
      return [{ topic: "chat.plan.updated", params: { ...at, ...why, plan, item: shown } }];
    }
    const completed: Unnumbered = { topic: "chat.item.completed", params: { ...at, item: shown } };
    if (item.type !== "fileChange" || item.status !== "completed") return [completed];
    this.#diffs.push(...item.changes.map(({ diff }) => diff));
    return [completed, { topic: "chat.diff.updated", params: { turnId, diff: this.#diffs.join("\n") } }];
  }

  #used({ turnId, usage }: EventOf<"model.responded">): readonly Unnumbered[] {
    this.#total = addUsage(this.#total, usage);
    const tokenUsage = { total: tokensOf(this.#total), last: tokensOf(usage), modelContextWindow: this.#window };
    return [{ topic: "chat.token.usage.updated", params: { turnId, tokenUsage } }];
  }
}

/** For a chat that was deleted before it was read: it has no number, and nothing follows it. */
export function deletedUnread({ stream, at }: StoredEvent): ChatEvent {
  const base = { seq: 0, ts: new Date(at).toISOString(), live: true, chat_id: stream, threadId: stream } as const;
  return { topic: "chat.thread.updated", params: { ...base, schema: 1, status: "deleted" } };
}

/** Key by key; null takes one out. */
function merged(settings: ChatSettings, changes: Readonly<Record<string, unknown>>): ChatSettings {
  return Object.fromEntries(Object.entries({ ...settings, ...changes }).filter(([, value]) => value !== null));
}

/** Events other than those of items and turns. */
function besides({ body, author }: StoredEvent): readonly Unnumbered[] {
  switch (body.type) {
    case "thread.created": {
      const title = body.title === undefined ? {} : { title: body.title, title_source: "user" as const };
      return [{ topic: "chat.thread.updated", params: { status: "active", cwd: body.workspace, ...title } }];
    }
    case "thread.moved":
      return [{ topic: "chat.thread.updated", params: { cwd: body.workspace } }];
    case "thread.named": {
      const title_source = isUser(author) ? "user" : "auto";
      return [{ topic: "chat.thread.updated", params: { title: body.name, title_source } }];
    }
    case "thread.archived":
      return [{ topic: "chat.thread.updated", params: { status: body.isArchived ? "archived" : "active" } }];
    case "thread.deleted":
      return [{ topic: "chat.thread.updated", params: { status: "deleted" } }];
    case "model.retried": {
      const { code, message } = body.cause;
      return [{ topic: "chat.error", params: { turnId: body.turnId, message, code, retryable: true } }];
    }
    case "path.violated": {
      const message = `a protected path was written: ${body.path}`;
      return [{ topic: "chat.warning", params: { turnId: body.turnId, message, code: "path.violated" } }];
    }
    case "hook.ran": {
      if (body.failure === undefined) return [];
      const message = `a ${body.event} hook failed: ${body.failure.message}`;
      return [{ topic: "chat.warning", params: { turnId: body.turnId, message, code: body.failure.code } }];
    }
    default:
      return [];
  }
}

export const CHAT_DECISIONS = ["accept", "accept_for_session", "decline", "cancel"] as const;

export function chatDecision(decision: Decision): (typeof CHAT_DECISIONS)[number] {
  return decision === "acceptForThread" ? "accept_for_session" : decision;
}

export function decisionOf(decision: (typeof CHAT_DECISIONS)[number]): Decision {
  return decision === "accept_for_session" ? "acceptForThread" : decision;
}

/** Words that were said once do not answer the next question. */
function isAnsweredOnce({ kind }: ApprovalQuestion): boolean {
  return kind === "userInput" || kind === "elicitation";
}

function isOnce(decision: (typeof CHAT_DECISIONS)[number]): boolean {
  return decision !== "accept_for_session";
}

function asked({ turnId, approvalId, question }: EventOf<"approval.requested">): Unnumbered {
  const params = {
    turnId,
    itemId: question.itemId,
    request_id: approvalId,
    codex_request_id: approvalId,
    kind: question.kind,
    ...(question.reason === undefined ? {} : { reason: question.reason }),
    ...subject(question),
    available_decisions: isAnsweredOnce(question) ? CHAT_DECISIONS.filter(isOnce) : [...CHAT_DECISIONS],
  };
  return { topic: "chat.approval.required", params };
}

function subject(question: ApprovalQuestion): Readonly<Record<string, unknown>> {
  switch (question.kind) {
    case "command":
      return {
        command: question.command,
        cwd: question.cwd,
        ...(question.wish === undefined ? {} : { wish: question.wish }),
      };
    case "fileChange":
      return { changes: question.paths.map((path) => ({ path })) };
    case "tool":
      return {
        tool: question.tool,
        input: question.arguments ?? {},
        ...(question.description === undefined ? {} : { tool_description: question.description }),
      };
    case "userInput":
      return { questions: question.questions };
    case "elicitation":
      return { tool: question.server, message: question.message, content_schema: question.schema };
    case "permissions":
      return { cwd: question.cwd, permissions: question.permissions };
  }
}

function answered(
  { turnId, approvalId, decision, reason, answers, content }: EventOf<"approval.resolved">,
  author: Author,
): Unnumbered {
  const params = {
    turnId,
    request_id: approvalId,
    codex_request_id: approvalId,
    decision: chatDecision(decision),
    by: author,
    ...(isUser(author) ? {} : { auto: true as const }),
    ...(reason === undefined ? {} : { reason }),
    ...(answers === undefined ? {} : { answers }),
    ...(content === undefined ? {} : { content }),
  };
  return { topic: "chat.approval.resolved", params };
}

type End = "completed" | "interrupted" | "failed";

/** A requested stop is no error; any other early end is. */
function ended(turnId: string, status: End, failure: Failure | undefined): Unnumbered<"chat.turn.completed"> {
  const error = chatError(status, failure);
  const turn = { id: turnId, status };
  return { topic: "chat.turn.completed", params: { turnId, turn, status, ...(error === undefined ? {} : { error }) } };
}

export function chatError(status: End, failure: Failure | undefined) {
  if (failure === undefined || (status === "interrupted" && failure.code === "turn.interrupted")) return undefined;
  return { message: failure.message, code: failure.code, retryable: isRetryable(failure.code) };
}

export function endStatus({ code }: Failure): "interrupted" | "failed" {
  return code === "turn.interrupted" ? "interrupted" : "failed";
}

export function tokensOf(usage: Usage): Record<string, number> {
  const { cacheWriteInputTokens: _notSent, ...tokens } = tokenBreakdown(usage);
  return tokens;
}
