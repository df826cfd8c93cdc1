/**
 * One thread live: stored events and deltas in, what clients are sent out, in the order of the original. `restore` takes up
 * a thread that has a past.
 */
import {
  addUsage,
  isUser,
  nextGoal,
  NO_USAGE,
  type ApprovalQuestion,
  type EventOf,
  type Item,
  type ItemDelta,
  type StandingGoal,
  type StoredEvent,
  type Usage,
} from "@heddle/protocol";
import { tokenBreakdown } from "../thread-usage.ts";
import { approvalRequest, askedItem } from "./approvals.ts";
import { clientCall, isClientCall } from "./client-tools.ts";
import { createDeltas, type Deltas } from "./deltas.ts";
import { retryError, turnError } from "./errors.ts";
import { hookRun } from "./hooks.ts";
import { goalNotice } from "./goals.ts";
import { gitDiff } from "./file-diffs.ts";
import { codexItem } from "./items.ts";
import { enteredReview, exitedReview } from "./reviews.ts";
import type {
  CodexNotification,
  CodexThreadItem,
  CodexThreadStatus,
  CodexTurn,
  Outgoing,
  WaitingFlag,
} from "./shapes.ts";
import { endError, newTurn, seconds } from "./turns.ts";

export interface ThreadDialectOptions {
  readonly threadId: string;
  /** The model's window, where it is known. */
  readonly contextWindow: (model: string) => number | undefined;
}

interface ActiveTurn {
  readonly id: string;
  readonly model: string;
  readonly contextTokens: number | undefined;
  readonly admission: EventOf<"turn.admitted">;
  startedAtMs: number;
  isAnnounced: boolean;
  /** Its end is news of the goal. */
  isForGoal: boolean;
  /** When each running item began. */
  readonly items: Map<string, number>;
  readonly questions: Map<string, ApprovalQuestion>;
  /** What the model wrote for each call of its last answer, to show what is asked about. */
  readonly calls: Map<string, string>;
  readonly diffs: string[];
  lastMessage: CodexThreadItem | undefined;
}

/** Where a thread stood before its last turns, and what holds for it now. */
export interface ThreadState {
  readonly total: Usage;
  readonly workspace: string;
  readonly queued: readonly string[];
  readonly goal: StandingGoal | undefined;
}

/** The whole diff is sent after every change; of a longer one the older changes are left out. */
const MAX_DIFF_CHARS = 256 * 1024;

export class ThreadDialect {
  readonly #threadId: string;
  readonly #contextWindow: ThreadDialectOptions["contextWindow"];
  readonly #deltas: Deltas;
  #queued = new Set<string>();
  #turn: ActiveTurn | undefined;
  #hasFailed = false;
  #total: Usage = NO_USAGE;
  #workspace = "";
  #goal: StandingGoal | undefined;
  /** The usage that was sent last. */
  #sentUsage: CodexNotification | undefined;
  /** Of the last request, until it is sent. */
  #last: Usage | undefined;

  constructor({ threadId, contextWindow }: ThreadDialectOptions) {
    this.#threadId = threadId;
    this.#contextWindow = contextWindow;
    this.#deltas = createDeltas(threadId);
  }

  get status(): CodexThreadStatus {
    if (this.#turn?.isAnnounced === true) {
      return { type: "active", activeFlags: flagsOf([...this.#turn.questions.values()]) };
    }
    return { type: this.#hasFailed ? "systemError" : "idle" };
  }

  /** The usage of the thread so far, for a new follower; undefined: none. */
  get usage(): CodexNotification | undefined {
    return this.#sentUsage;
  }

  /** The turn that has no end yet. */
  get activeTurnId(): string | undefined {
    return this.#turn?.id;
  }

  /** Takes up a thread by its last turns; answers what they brought. */
  restore({ total, workspace, queued, goal }: ThreadState, lastTurns: readonly StoredEvent[]): readonly Outgoing[] {
    this.#total = total;
    this.#workspace = workspace;
    const brought = lastTurns.flatMap((event) => this.event(event));
    this.#goal = goal;
    this.#queued = new Set(queued);
    return brought;
  }

  delta(delta: ItemDelta): readonly Outgoing[] {
    return this.#deltas.delta(delta);
  }

  event(stored: StoredEvent): readonly Outgoing[] {
    const { body } = stored;
    this.#goal = nextGoal(this.#goal, stored);
    switch (body.type) {
      case "thread.created":
      case "thread.moved":
        this.#workspace = body.workspace;
        return [];
      case "turn.admitted":
        this.#turn = admitted(body, stored.at);
        // It has waited until now.
        if (!this.#queued.delete(body.turnId)) return [];
        return [notify(stored, "thread/queue/changed", { threadId: this.#threadId })];
      case "turn.started":
        return this.#begin(stored, { sandboxLevel: body.sandboxLevel });
      case "item.started":
        return this.#itemStarted(body.item, stored);
      case "item.completed":
        return this.#itemCompleted(body.item, stored);
      case "model.requested":
        return this.#takeUsage(stored);
      case "model.responded":
        this.#turn?.calls.clear();
        for (const part of body.output) if (part.kind === "toolCall") this.#turn?.calls.set(part.callId, part.input);
        this.#total = addUsage(this.#total, body.usage);
        this.#last = body.usage;
        return [];
      case "approval.requested":
        return this.#asked(body, stored);
      case "approval.resolved":
        return this.#resolved(body, stored);
      case "turn.completed":
        return this.#end(body, stored);
      default:
        return this.#besides(stored);
    }
  }

  /** Events other than those of items and turns. */
  #besides(stored: StoredEvent): readonly Outgoing[] {
    const { body } = stored;
    const threadId = this.#threadId;
    switch (body.type) {
      case "model.retried": {
        const error = retryError(body);
        return [notify(stored, "error", { error, willRetry: true, threadId, turnId: body.turnId })];
      }
      case "path.violated":
        return [notify(stored, "warning", { threadId, message: `a protected path was written: ${body.path}` })];
      case "hook.ran": {
        const runs = hookRun(stored, body).map(({ method, params }) => notify(stored, method, { ...params, threadId }));
        if (body.failure === undefined) return runs;
        const message = `a ${body.event} hook failed: ${body.failure.message}`;
        return [...runs, notify(stored, "warning", { threadId, message })];
      }
      case "thread.goal-changed": {
        // A change by the agent is sent with the end of its turn.
        if (this.#turn !== undefined && !isUser(stored.author)) {
          this.#turn.isForGoal = true;
          return [];
        }
        return [this.#goalNotice(stored, null)];
      }
      case "thread.reverted":
        return [notify(stored, "thread/reverted", { threadId })];
      case "turn.queued":
      case "turn.dequeued":
        if (body.type === "turn.queued") this.#queued.add(body.turnId);
        else this.#queued.delete(body.turnId);
        if (body.type === "turn.queued" && body.isMore === true) return [];
        return [notify(stored, "thread/queue/changed", { threadId })];
      default:
        return [];
    }
  }

  #goalNotice(stored: StoredEvent, turnId: string | null): Outgoing {
    const { method, params } = goalNotice(this.#threadId, this.#goal, turnId);
    return notify(stored, method, params);
  }

  #statusChanged({ version }: StoredEvent): Outgoing {
    const params = { threadId: this.#threadId, status: this.status, seq: version };
    return { kind: "notify", to: "everyone", notification: { method: "thread/status/changed", params } };
  }

  /** The original sends the usage of a request when its calls have ended. */
  #takeUsage(stored: StoredEvent): readonly Outgoing[] {
    if (this.#last === undefined || this.#turn === undefined) return [];
    const { id: turnId, contextTokens, model } = this.#turn;
    const tokenUsage = {
      total: tokenBreakdown(this.#total),
      last: tokenBreakdown(this.#last),
      modelContextWindow: contextTokens ?? this.#contextWindow(model) ?? null,
    };
    this.#last = undefined;
    const params = { threadId: this.#threadId, turnId, tokenUsage };
    this.#sentUsage = { method: "thread/tokenUsage/updated", params };
    return [notify(stored, "thread/tokenUsage/updated", params)];
  }

  #begin(stored: StoredEvent, more: { readonly sandboxLevel?: string } = {}): readonly Outgoing[] {
    const turn = this.#turn;
    if (turn === undefined || turn.isAnnounced) return [];
    turn.isAnnounced = true;
    turn.startedAtMs = stored.at;
    this.#hasFailed = false;
    const params = { threadId: this.#threadId, turn: newTurn(turn.id, stored.at), ...more };
    const entered = enteredReview(turn.admission, { startedAtMs: stored.at, completedAtMs: null });
    return [this.#statusChanged(stored), notify(stored, "turn/started", params), ...this.#mark(entered, stored)];
  }

  /** An item that starts and completes at once. */
  #mark(item: CodexThreadItem | undefined, stored: StoredEvent): readonly Outgoing[] {
    const turn = this.#turn;
    if (item === undefined || turn === undefined) return [];
    const { at } = stored;
    const of = { threadId: this.#threadId, turnId: turn.id };
    return [
      notify(stored, "item/started", { item, ...of, startedAtMs: at }),
      notify(stored, "item/completed", { item: { ...item, completedAtMs: at }, ...of, completedAtMs: at }),
    ];
  }

  #itemStarted(item: Item, stored: StoredEvent): readonly Outgoing[] {
    const turn = this.#turn;
    if (turn === undefined || turn.items.has(item.id)) return [];
    const { at } = stored;
    turn.items.set(item.id, at);
    const shown = codexItem(item, { startedAtMs: at, completedAtMs: null });
    if (shown === undefined) return [];
    const usage = item.type === "userMessage" ? this.#takeUsage(stored) : [];
    const params = { item: shown, threadId: this.#threadId, turnId: turn.id, startedAtMs: at };
    const call = clientCall(item, params);
    this.#deltas.started(item);
    return [...usage, notify(stored, "item/started", params), ...call];
  }

  #itemCompleted(item: Item, stored: StoredEvent): readonly Outgoing[] {
    const turn = this.#turn;
    if (turn === undefined) return [];
    const { at } = stored;
    const begun = turn.items.has(item.id) ? [] : [...this.#itemStarted(item, stored)];
    const startedAtMs = turn.items.get(item.id) ?? at;
    turn.items.delete(item.id);
    this.#deltas.completed(item.id);
    if (isClientCall(item)) begun.push({ kind: "called", itemId: item.id });
    const shown = codexItem(item, { startedAtMs, completedAtMs: at });
    if (shown === undefined) return this.#sentOtherwise(item, stored, turn.id);
    const isMessage = shown.type === "agentMessage" && shown["isPartial"] !== true;
    // An empty one is the answer only where there is no other.
    if (isMessage && (shown["text"] !== "" || turn.lastMessage === undefined)) turn.lastMessage = shown;
    const params = { item: shown, threadId: this.#threadId, turnId: turn.id, completedAtMs: at };
    return [...begun, notify(stored, "item/completed", params), ...this.#diff(item, stored, turn)];
  }

  /** Items that the original sends in other ways. */
  #sentOtherwise(item: Item, stored: StoredEvent, turnId: string): readonly Outgoing[] {
    const threadId = this.#threadId;
    if (item.type === "notice") {
      // The state of an MCP server is told when it changes.
      if (item.mcp !== undefined) return [];
      return [notify(stored, "warning", { threadId, message: item.message })];
    }
    if (item.type !== "plan" || item.status !== "completed") return [];
    const plan = item.steps.map(({ text, status }) => ({ step: text, status }));
    return [notify(stored, "turn/plan/updated", { threadId, turnId, explanation: item.explanation ?? null, plan })];
  }

  #diff(item: Item, stored: StoredEvent, turn: ActiveTurn): readonly Outgoing[] {
    if (item.type !== "fileChange" || item.status !== "completed") return [];
    turn.diffs.push(...item.changes.map((change) => gitDiff(change, this.#workspace)));
    let chars = turn.diffs.reduce((sum, diff) => sum + diff.length, 0);
    while (chars > MAX_DIFF_CHARS && turn.diffs.length > 1) chars -= turn.diffs.shift()?.length ?? 0;
    const params = { threadId: this.#threadId, turnId: turn.id, diff: turn.diffs.join("") };
    return [notify(stored, "turn/diff/updated", params)];
  }

  #asked({ approvalId, question }: EventOf<"approval.requested">, stored: StoredEvent): readonly Outgoing[] {
    const turn = this.#turn;
    if (turn === undefined) return [];
    turn.questions.set(approvalId, question);
    const item = askedItem(question, turn.calls.get(question.callId));
    const at = { threadId: this.#threadId, turnId: turn.id, startedAtMs: stored.at };
    const status = this.#statusChanged(stored);
    const begun = item === undefined ? [] : this.#itemStarted(item, stored);
    return [
      // The original shows a change or a tool before the status, and a command after it.
      ...(question.kind === "command" ? [status, ...begun] : [...begun, status]),
      { kind: "ask", approvalId, question, request: approvalRequest(question, at) },
    ];
  }

  #resolved({ approvalId }: EventOf<"approval.resolved">, stored: StoredEvent): readonly Outgoing[] {
    if (this.#turn?.questions.delete(approvalId) !== true) return [];
    return [{ kind: "resolved", approvalId }, this.#statusChanged(stored)];
  }

  #end(body: EventOf<"turn.completed">, stored: StoredEvent): readonly Outgoing[] {
    const turn = this.#turn;
    if (turn === undefined) return [];
    const threadId = this.#threadId;
    const begun = this.#begin(stored);
    const times = { startedAtMs: stored.at, completedAtMs: null };
    const exited = exitedReview(turn.admission, turn.lastMessage?.["text"], times);
    const before = [...begun, ...this.#mark(exited, stored), ...this.#takeUsage(stored)];
    this.#turn = undefined;
    this.#deltas.reset();
    this.#hasFailed = body.status === "failed";
    const failure = body.status === "failed" ? body.failure : undefined;
    const error = failure && { error: turnError(failure), willRetry: false, threadId, turnId: turn.id };
    return [
      ...before,
      this.#statusChanged(stored),
      ...(error === undefined ? [] : [notify(stored, "error", error)]),
      notify(stored, "turn/completed", { threadId, turn: endedTurn(turn, body, stored.at) }),
      ...(turn.isForGoal && this.#goal !== undefined ? [this.#goalNotice(stored, turn.id)] : []),
    ];
  }
}

function flagsOf(questions: readonly ApprovalQuestion[]): readonly WaitingFlag[] {
  const isUserInput = ({ kind }: ApprovalQuestion): boolean => kind === "userInput";
  return [
    ...(questions.some((question) => !isUserInput(question)) ? (["waitingOnApproval"] as const) : []),
    ...(questions.some(isUserInput) ? (["waitingOnUserInput"] as const) : []),
  ];
}

/** Everything that comes of one stored event carries its number in the thread. */
function notify({ version }: StoredEvent, method: string, params: Readonly<Record<string, unknown>>): Outgoing {
  return { kind: "notify", to: "followers", notification: { method, params: { ...params, seq: version } } };
}

function endedTurn(turn: ActiveTurn, body: EventOf<"turn.completed">, at: number): CodexTurn {
  const items = body.status === "completed" && turn.lastMessage !== undefined ? [turn.lastMessage] : [];
  return {
    ...newTurn(turn.id, turn.startedAtMs),
    items,
    itemsView: items.length > 0 ? "summary" : "notLoaded",
    status: body.status,
    error: endError(body),
    completedAt: seconds(at),
    durationMs: body.durationMs,
    ...(body.costUsd === undefined ? {} : { costUsd: body.costUsd }),
  };
}

function admitted(admission: EventOf<"turn.admitted">, at: number): ActiveTurn {
  const { turnId, settings } = admission;
  return {
    id: turnId,
    admission,
    model: settings.model,
    contextTokens: settings.contextTokens,
    startedAtMs: at,
    isAnnounced: false,
    isForGoal: admission.task === "goal",
    items: new Map(),
    questions: new Map(),
    calls: new Map(),
    diffs: [],
    lastMessage: undefined,
  };
}
