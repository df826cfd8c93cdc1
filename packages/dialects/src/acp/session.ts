/**
 * Stored events and live deltas of one thread as updates of a session, in their order. Every text comes whole whatever the
 * reader leaves out: what was skipped is sent when its item has ended.
 */
import { never, type EventOf, type Item, type ItemDelta, type StoredEvent } from "@heddle/protocol";
import { endOf } from "./ends.ts";
import { askedCall } from "./permissions.ts";
import { createTexts, type Texts } from "./texts.ts";
import { consoleOutput, toolCallOf } from "./tool-calls.ts";
import type { AcpClient, AcpOutgoing, AcpToolCall, AcpUpdate } from "./shapes.ts";

export interface AcpSessionOptions {
  readonly client: AcpClient;
  /** Input of this client, which shows it already. */
  readonly isOwn: (clientId: string) => boolean;
  /** The model's window, where it is known. */
  readonly contextWindow: (model: string) => number | undefined;
}

interface ActiveTurn {
  readonly id: string;
  readonly model: string;
  readonly contextTokens: number | undefined;
  /** What the model wrote for each call of its last answer, to show what is asked about. */
  readonly calls: Map<string, string>;
  stopReason: string | undefined;
}

/** Of a running command: enough to see what it does; the end has the rest. */
const MAX_LIVE_CHARS = 8 * 1024;

export class AcpSessionDialect {
  readonly #options: AcpSessionOptions;
  readonly #texts: Texts;
  /** Calls that the client has been shown. */
  readonly #shown = new Set<string>();
  /** What running commands have printed, and how much of it the client was sent. */
  readonly #outputs = new Map<string, { text: string; sent: number; isBehind: boolean }>();
  readonly #questions = new Set<string>();
  #turn: ActiveTurn | undefined;

  constructor(options: AcpSessionOptions) {
    this.#options = options;
    this.#texts = createTexts();
  }

  get activeTurnId(): string | undefined {
    return this.#turn?.id;
  }

  /** `isBehind`: the reader has no room for what the end of the item brings anyway. */
  delta(delta: ItemDelta, isBehind: boolean): readonly AcpOutgoing[] {
    const output = delta.channel === "output" ? this.#outputs.get(delta.itemId) : undefined;
    if (output === undefined) return this.#texts.delta(delta, isBehind);
    if (!this.#options.client.drawsTerminals) return [];
    output.isBehind ||= isBehind;
    if (output.isBehind) return [];
    output.sent += delta.delta.length;
    return [terminalOutput(delta.itemId, delta.delta)];
  }

  /** A delta was lost on its way here. */
  lost(): void {
    this.#texts.lost();
    for (const output of this.#outputs.values()) output.isBehind = true;
  }

  event({ body, author }: StoredEvent): readonly AcpOutgoing[] {
    switch (body.type) {
      case "turn.admitted":
        this.#turn = {
          id: body.turnId,
          model: body.settings.model,
          contextTokens: body.settings.contextTokens,
          calls: new Map(),
          stopReason: undefined,
        };
        return [{ kind: "began", turnId: body.turnId }, { kind: "settings" }];
      case "turn.resumed":
        return [{ kind: "began", turnId: body.turnId }];
      case "item.started":
        return this.#started(body.item);
      case "item.checkpointed":
        return this.#grown(body);
      case "item.completed":
        return this.#completed(body.item);
      case "model.responded":
        return this.#responded(body);
      case "approval.requested": {
        const { approvalId, question } = body;
        this.#questions.add(approvalId);
        const call = askedCall(question, this.#turn?.calls.get(question.callId));
        return [...this.#call(call), { kind: "ask", approvalId, question, call }];
      }
      case "approval.resolved":
        return this.#questions.delete(body.approvalId) ? [{ kind: "resolved", approvalId: body.approvalId }] : [];
      case "turn.completed":
        return this.#ended(body);
      case "thread.named":
        return [update("session_info_update", { title: body.name })];
      case "thread.settings-changed":
        return [{ kind: "settings" }];
      case "envelope.entered":
        return [update("current_mode_update", { currentModeId: body.envelope.id }), { kind: "settings" }];
      case "path.violated":
        return this.#notice("warning", `a protected path was written: ${body.path}`);
      case "envelope.hop-refused":
        // The client that asked has its answer.
        if (body.hop.channel === "user" || author.startsWith("user:")) return [];
        return this.#notice("warning", `the hop to ${body.hop.to} was refused: ${body.failure.message}`);
      default:
        return [];
    }
  }

  #started(item: Item): readonly AcpOutgoing[] {
    if (item.type === "commandExecution") this.#outputs.set(item.id, { text: "", sent: 0, isBehind: false });
    this.#texts.started(item);
    if (item.type === "contextCompaction" && this.#options.client.showsCompactions) return [compaction(item)];
    const call = toolCallOf(item);
    return call === undefined ? [] : this.#call(this.#drawn(item, call));
  }

  /** At most one a second for an item, so it may hold all that there is to see. */
  #grown({ itemId, channel, appended }: EventOf<"item.checkpointed">): readonly AcpOutgoing[] {
    const output = channel === "output" ? this.#outputs.get(itemId) : undefined;
    if (output === undefined || this.#options.client.drawsTerminals) return [];
    output.text = (output.text + appended).slice(-MAX_LIVE_CHARS);
    return [update("tool_call_update", { toolCallId: itemId, content: consoleOutput(output.text) })];
  }

  #completed(item: Item): readonly AcpOutgoing[] {
    switch (item.type) {
      case "userMessage":
        return this.#userMessage(item);
      case "agentMessage":
      case "proposedPlan":
      case "reasoning":
        return this.#texts.completed(item);
      case "plan":
        return item.status === "completed" ? [planUpdate(item)] : [];
      case "notice":
        return this.#notice(item.level, item.message);
      case "contextCompaction":
        if (this.#options.client.showsCompactions) return [compaction(item)];
        return this.#endOfCall(item);
      case "commandExecution":
      case "fileChange":
      case "toolCall":
      case "mcpToolCall":
      case "collabToolCall":
      case "webSearch":
      case "imageView":
        return this.#endOfCall(item);
      default:
        return never(item);
    }
  }

  #endOfCall(item: Item): readonly AcpOutgoing[] {
    const call = toolCallOf(item);
    if (call === undefined) return [];
    const ending = this.#terminalEnd(item);
    this.#outputs.delete(item.id);
    return [...ending, ...this.#call(this.#drawn(item, call))];
  }

  /** The whole of a call that is new to the client, and what may have changed of one that is not. */
  #call(call: AcpToolCall): readonly AcpOutgoing[] {
    if (!this.#shown.has(call.toolCallId)) {
      this.#shown.add(call.toolCallId);
      return [update("tool_call", { ...call })];
    }
    return [update("tool_call_update", { ...call })];
  }

  /** The client draws what the command prints, in place of content. */
  #drawn(item: Item, call: AcpToolCall): AcpToolCall {
    if (item.type !== "commandExecution" || !this.#options.client.drawsTerminals) return call;
    const { id, cwd, status, exitCode, signal } = item;
    const isOver = status !== "inProgress";
    const about = isOver
      ? { terminal_exit: { terminal_id: id, exit_code: exitCode ?? null, signal: signal ?? null } }
      : { terminal_info: { terminal_id: id, cwd } };
    return { ...call, content: [{ type: "terminal", terminalId: id }], _meta: about };
  }

  #terminalEnd(item: Item): readonly AcpOutgoing[] {
    if (item.type !== "commandExecution" || !this.#options.client.drawsTerminals) return [];
    const sent = this.#outputs.get(item.id)?.sent ?? 0;
    const begins = this.#shown.has(item.id)
      ? []
      : this.#call(
          this.#drawn(
            { ...item, status: "inProgress" },
            {
              ...(toolCallOf({ ...item, status: "inProgress" }) ?? {
                toolCallId: item.id,
                title: item.command,
                kind: "execute",
              }),
              status: "in_progress",
            },
          ),
        );
    // A long output is kept as its two ends: then only what was not sent at all is sent.
    const isWhole = item.truncatedBytes === undefined;
    const rest = sent === 0 ? item.output : isWhole ? item.output.slice(sent) : "";
    return rest === "" ? begins : [...begins, terminalOutput(item.id, rest)];
  }

  #userMessage(item: Extract<Item, { type: "userMessage" }>): readonly AcpOutgoing[] {
    if (item.clientId !== undefined && this.#options.isOwn(item.clientId)) return [];
    return item.content.map((part) => {
      const content =
        part.type === "text"
          ? { type: "text", text: part.text }
          : { type: "image", mimeType: part.mediaType, data: part.base64 };
      return update("user_message_chunk", { content, messageId: item.id });
    });
  }

  #responded(body: EventOf<"model.responded">): readonly AcpOutgoing[] {
    const turn = this.#turn;
    if (turn === undefined || body.purpose !== undefined) return [];
    turn.calls.clear();
    turn.stopReason = body.stopReason;
    for (const part of body.output) if (part.kind === "toolCall") turn.calls.set(part.callId, part.input);
    const size = turn.contextTokens ?? this.#options.contextWindow(turn.model);
    if (size === undefined) return [];
    return [update("usage_update", { used: body.usage.inputTokens + body.usage.outputTokens, size })];
  }

  #ended(body: EventOf<"turn.completed">): readonly AcpOutgoing[] {
    const end = endOf(body, this.#turn?.stopReason);
    this.#turn = undefined;
    this.#texts.reset();
    this.#outputs.clear();
    // Ends of their own for the protocol, which has no text for them.
    const { failure } = body;
    const why =
      end.kind === "failed" || failure === undefined || body.status !== "failed"
        ? []
        : this.#notice("error", failure.message);
    return [...why, { kind: "ended", turnId: body.turnId, end }];
  }

  /** A client that knows no notices is shown them beside the answer, not in it. */
  #notice(severity: "warning" | "error", text: string): readonly AcpOutgoing[] {
    if (this.#options.client.showsNotices) return [update("notice", { severity, title: text })];
    const name = severity === "error" ? "Error" : "Warning";
    return [update("agent_thought_chunk", { content: { type: "text", text: `${name}: ${text}\n` } })];
  }
}

function update(sessionUpdate: string, fields: Readonly<Record<string, unknown>>): AcpOutgoing {
  const shown: AcpUpdate = { sessionUpdate, ...fields };
  return { kind: "update", update: shown };
}

function terminalOutput(id: string, data: string): AcpOutgoing {
  return update("tool_call_update", { toolCallId: id, _meta: { terminal_output: { terminal_id: id, data } } });
}

function planUpdate({ steps }: Extract<Item, { type: "plan" }>): AcpOutgoing {
  const entries = steps.map(({ text, status }) => ({
    content: text,
    priority: "medium",
    status: status === "inProgress" ? "in_progress" : status,
  }));
  return update("plan", { entries });
}

function compaction({ id, status, error }: Extract<Item, { type: "contextCompaction" }>): AcpOutgoing {
  const shown = { inProgress: "in_progress", completed: "completed", interrupted: "cancelled" } as const;
  return update("compaction_update", {
    compactionId: id,
    status: status in shown ? shown[status as keyof typeof shown] : "failed",
    ...(error === undefined ? {} : { error }),
  });
}
