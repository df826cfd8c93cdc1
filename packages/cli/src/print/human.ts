/**
 * For people: progress on stderr as it happens, the final message alone on stdout. A running item is shown from its deltas
 * and completed from its stored form, so that what is shown is always a prefix of what is recorded.
 * Everything that comes from a model, a command or a file stands in the gutter of screen.ts.
 */
import {
  never,
  shownAnswer,
  visibleLine,
  type EventBody,
  type EventOf,
  type InputPart,
  type Item,
  type ItemDelta,
  type TurnSettings,
  type HopRequest,
  type Permissions,
} from "@heddle/protocol";
import { itemHead, itemTail, planLines, resultLine, runningText, WAITING } from "./items.ts";
import type { Output } from "./output.ts";
import type { Printer } from "./output.ts";
import type { Progress } from "./progress.ts";
import { behind, createQuote, quoted } from "./screen.ts";
import { duration, money, skippedText, type Style } from "./style.ts";

export interface HumanPrinterOptions {
  readonly err: Output;
  /** Of the same screen as `err`. */
  readonly progress?: Progress | undefined;
  readonly style: Style;
  readonly version: string;
  readonly workspace: string;
  /** Set when a script is played instead of asking a model. */
  readonly scriptFile?: string | undefined;
  /** False when the thread is deleted at the end, so that there is no record to look at. */
  readonly isKept?: boolean;
}

/** One command must not scroll everything else away; the record holds the rest. */
const MAX_SHOWN_OUTPUT_CHARS = 16_000;

/** How much of a running item is on the screen. */
interface Shown {
  text: string;
  /** Something could not be shown in time; the rest waits for the completed item. */
  isBehind: boolean;
}

export function createHumanPrinter(options: HumanPrinterOptions): Printer {
  const { err, style, progress } = options;
  const shown = new Map<string, Shown>();
  /** Items whose head is printed, and deltas that came before it. */
  const open = new Set<string>();
  const early = createEarlyDeltas();
  const quote = createQuote();
  let isAtLineStart = true;
  let admitted: EventOf<"turn.admitted"> | undefined;
  /** The item that was shown last: a command that ends behind others is named again. */
  let last: string | undefined;

  async function put(text: string): Promise<void> {
    if (text === "") return;
    isAtLineStart = text.endsWith("\n");
    await err.write(text);
  }
  /** Text of others; it continues at the cursor. */
  function quotedPiece({ text, isDim }: Foreign): string {
    const shownText = quote.add(text, isAtLineStart);
    if (text !== "") isAtLineStart = text.endsWith("\n");
    return isDim ? style.dim(shownText) : shownText;
  }
  const line = (text: string): Promise<void> => put(`${isAtLineStart ? "" : "\n"}${text}\n`);

  function stream(delta: ItemDelta): string {
    const state = shown.get(delta.itemId) ?? { text: "", isBehind: false };
    shown.set(delta.itemId, state);
    const isOutput = delta.channel === "output";
    if (isOutput && state.text.length + delta.delta.length > MAX_SHOWN_OUTPUT_CHARS) state.isBehind = true;
    if (state.isBehind || err.isBehind) {
      state.isBehind = true;
      return "";
    }
    state.text += delta.delta;
    return quotedPiece({ text: delta.delta, isDim: delta.channel !== "text" && !isOutput });
  }

  async function startItem(item: Item, threadId: string): Promise<void> {
    const head = itemHead(item, style);
    if (head !== undefined) await line(head);
    open.add(item.id);
    progress?.begin(item.id, runningText(item), threadId);
    last = item.id;
    for (const delta of early.take(item.id)) await err.write(stream(delta));
  }

  async function completeItem(item: Item, threadId: string): Promise<void> {
    if (!open.has(item.id) || (item.type === "commandExecution" && last !== item.id)) await startItem(item, threadId);
    last = item.id;
    const already = shown.get(item.id)?.text ?? "";
    const finished = item.type === "agentMessage" ? { ...item, text: shownAnswer(admitted, item.text) } : item;
    if (item.type === "plan") await put(`${planLines(item).join("\n")}\n`);
    else {
      const rest = restOf(finished, already);
      if (rest.isAnew && !isAtLineStart) await put("\n");
      await err.write(quotedPiece(rest));
    }
    shown.delete(item.id);
    open.delete(item.id);
    progress?.end(item.id);
    for (const text of itemTail(item, style)) await line(text);
  }

  return {
    async event({ stream: threadId, body }) {
      if (body.type === "item.started") return startItem(body.item, threadId);
      if (body.type === "item.completed") return completeItem(body.item, threadId);
      if (body.type === "turn.admitted") admitted = body;
      if (body.type === "turn.started") progress?.begin(threadId, WAITING);
      if (body.type === "turn.completed") for (const key of [...open, threadId]) progress?.end(key);
      const text = eventText(threadId, body, options);
      return text === undefined ? undefined : line(text);
    },
    delta(delta) {
      progress?.touch(delta.itemId);
      if (!open.has(delta.itemId)) {
        if (!early.keep(delta)) shown.set(delta.itemId, { text: "", isBehind: true });
        return;
      }
      const text = stream(delta);
      if (text === "") return;
      last = delta.itemId;
      // Not awaited: a delta that does not fit is shown with the completed item.
      err.write(text).catch(() => undefined);
    },
    notice: (text) => line(style.yellow(behind(text))),
  };
}

/** Text of others. */
interface Foreign {
  readonly text: string;
  readonly isDim?: boolean;
  /** It does not go on with what is shown. */
  readonly isAnew?: boolean;
}

type PlainEvent = Exclude<EventBody, { type: "item.started" | "item.completed" }>;

/** undefined: nothing a person follows a turn for. */
function eventText(threadId: string, body: PlainEvent, options: HumanPrinterOptions): string | undefined {
  const { style } = options;
  switch (body.type) {
    case "turn.admitted":
      return header(threadId, body, options);
    case "turn.started":
      return style.dim(`sandbox level: ${sandboxText(body)}`);
    case "model.retried":
      return style.yellow(retryText(body));
    case "approval.requested":
      return style.yellow(`? ${questionText(body)}`);
    case "approval.resolved":
      return style.dim(`  ${body.decision}${body.reason === undefined ? "" : `: ${visibleLine(body.reason)}`}`);
    case "hop.taken":
      return style.yellow(hopText(body));
    case "path.violated":
      return style.red(violationText(body));
    case "turn.interrupt-requested":
      return style.yellow(`stopping: ${visibleLine(body.failure.message)}`);
    case "turn.steered":
      return style.dim("more input was added to this turn");
    case "turn.completed":
      return endText(threadId, body, options);
    case "hook.ran":
      return body.outcome === "ok" ? undefined : style.yellow(hookText(body));
    case "model.responded":
      return body.skipped === undefined ? undefined : style.yellow(skippedText(body.skipped));
    case "thread.moved":
      return style.yellow(`the thread continues in ${visibleLine(body.workspace)}`);
    default:
      return undefined;
  }
}

function hookText({ event, outcome, command, reason, failure }: EventOf<"hook.ran">): string {
  return visibleLine(`hook ${event} ${outcome} (${command}): ${failure?.message ?? reason ?? ""}`);
}

/** Deltas outrun the stored start of their item by a moment; they wait for it, up to a bound. */
const MAX_EARLY_CHARS = 64 * 1024;

function createEarlyDeltas(): { keep(delta: ItemDelta): boolean; take(itemId: string): readonly ItemDelta[] } {
  const waiting = new Map<string, ItemDelta[]>();
  let chars = 0;
  return {
    keep(delta) {
      if (chars + delta.delta.length > MAX_EARLY_CHARS) return false;
      chars += delta.delta.length;
      const list = waiting.get(delta.itemId);
      if (list === undefined) waiting.set(delta.itemId, [delta]);
      else list.push(delta);
      return true;
    },
    take(itemId) {
      const list = waiting.get(itemId) ?? [];
      waiting.delete(itemId);
      for (const { delta } of list) chars -= delta.length;
      return list;
    },
  };
}

/** What the deltas have not shown of a completed item. */
function restOf(item: Item, already: string): Foreign {
  switch (item.type) {
    case "agentMessage":
    case "proposedPlan":
      return item.text.startsWith(already)
        ? { text: item.text.slice(already.length) }
        : { text: item.text, isAnew: true };
    case "reasoning":
      return { text: already === "" ? item.summary.join("\n\n") : "", isDim: true };
    case "commandExecution": {
      if (!item.output.startsWith(already)) return { text: "" };
      return { text: item.output.slice(already.length, Math.max(already.length, MAX_SHOWN_OUTPUT_CHARS)) };
    }
    default:
      return { text: "" };
  }
}

/** The same lines, in the same order, as Codex prints them, for programs that look for `session id:`. */
function header(threadId: string, body: EventOf<"turn.admitted">, options: HumanPrinterOptions): string {
  const { style, version, workspace, scriptFile } = options;
  const { settings } = body;
  const model =
    scriptFile === undefined
      ? visibleLine(settings.model)
      : `none: the script ${visibleLine(scriptFile)} is run, no model is used`;
  const { envelope, ceiling } = settings;
  const most = ceiling === undefined ? "" : `, ceiling ${visibleLine(ceiling)}`;
  const sandbox =
    envelope === undefined ? `sandbox: ${accessText(settings)}${most}` : `envelope: ${visibleLine(envelope)}${most}`;
  return [
    style.bold(`heddle ${version}`),
    "--------",
    style.dim(`workdir: ${visibleLine(workspace)}`),
    style.dim(`model: ${model}`),
    style.dim(`provider: ${visibleLine(settings.provider)}`),
    style.dim(`approval: ${settings.approvalPolicy}`),
    settings.sandboxMode === "danger-full-access" ? style.red(sandbox) : style.dim(sandbox),
    style.dim(`reasoning effort: ${visibleLine(settings.effort ?? "none")}`),
    style.dim(`session id: ${threadId}`),
    "--------",
    style.bold("user"),
    promptText(body.input),
  ].join("\n");
}

function accessText({ sandboxMode, networkAccess, networkHosts }: TurnSettings): string {
  const hosts = networkHosts === undefined ? "" : `, network ${networkHosts.join(", ")}`;
  if (sandboxMode === "read-only") return `read-only (-s workspace-write lets it change the folder)${hosts}`;
  if (sandboxMode === "danger-full-access") return "danger-full-access: no sandbox, the agent may do anything you may";
  return `workspace-write${hosts || `, network ${networkAccess ? "on" : "off"}`}`;
}

/** Enough to know it again. */
const MAX_PROMPT_LINES = 20;

function promptText(input: readonly InputPart[]): string {
  const parts = input.map((part) => (part.type === "text" ? part.text : `[${part.mediaType}]`));
  const lines = quoted(parts.join("\n"));
  const more = lines.length - MAX_PROMPT_LINES;
  return [...lines.slice(0, MAX_PROMPT_LINES), ...(more > 0 ? [`… ${more} more lines`] : [])].join("\n");
}

function sandboxText({ sandboxLevel }: EventOf<"turn.started">): string {
  return sandboxLevel === "none" ? "none: commands run with your own permissions" : sandboxLevel;
}

function retryText({ attempt, maxAttempts, delayMs, cause }: EventOf<"model.retried">): string {
  return `attempt ${attempt} of ${maxAttempts} failed (${visibleLine(cause.message)}), next in ${duration(delayMs)}`;
}

function questionText({ question }: EventOf<"approval.requested">): string {
  switch (question.kind) {
    case "command":
      return `run ${visibleLine(question.command)}${requestText(question.wish)}`;
    case "fileChange":
      return `change ${question.paths.map(visibleLine).join(", ")}`;
    case "tool":
      return `call ${visibleLine(question.tool)}`;
    case "userInput":
      return question.questions.map((one) => visibleLine(one.question)).join(" ");
    case "elicitation":
      return `${visibleLine(question.server)}: ${visibleLine(question.message)}`;
    case "permissions":
      return `more permissions: ${rightsText(question.permissions)}`;
    default:
      return never(question);
  }
}

function requestText(request: HopRequest | undefined): string {
  if (request === undefined) return "";
  return request.kind === "outside"
    ? " outside the sandbox"
    : ` with more permissions: ${rightsText(request.permissions)}`;
}

function rightsText({ read, write, network }: Permissions): string {
  const paths = (verb: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`${verb} ${list.map(visibleLine).join(", ")}`];
  return [...paths("read", read), ...paths("write", write), ...(network ? ["use the network"] : [])].join("; ");
}

function hopText({ scope, permissions }: EventOf<"hop.taken">): string {
  const what = permissions === undefined ? "outside the sandbox" : rightsText(permissions);
  return `allowed for this ${scope}: ${what}`;
}

function violationText({ path, quarantinedTo }: EventOf<"path.violated">): string {
  const moved = quarantinedTo === undefined ? "" : `; moved to ${visibleLine(quarantinedTo)}`;
  return `protected path written: ${visibleLine(path)}${moved}`;
}

function endText(threadId: string, end: EventOf<"turn.completed">, { style, isKept }: HumanPrinterOptions): string {
  const { usage } = end;
  const cached = usage.cachedInputTokens > 0 ? ` (${usage.cachedInputTokens} cached)` : "";
  const tokens = `${usage.inputTokens} tokens in${cached}, ${usage.outputTokens} out`;
  // A turn that failed before a model answered has no figures worth a line.
  const hasUsage = end.status === "completed" || usage.inputTokens + usage.outputTokens > 0;
  const figures = [duration(end.durationMs), ...(hasUsage ? [tokens, money(end.costUsd)] : [])].join(" · ");
  const how =
    isKept === false ? "" : `\nrecord: heddle threads show ${threadId}\nresume: heddle exec resume ${threadId}`;
  const failure = end.failure === undefined ? "" : `: ${behind(end.failure.message)}`;
  const used = `tokens used\n${usage.inputTokens - usage.cachedInputTokens + usage.outputTokens}\n`;
  return `${resultLine(end.status, failure, style)}\n${hasUsage ? used : ""}${style.dim(`${figures}${how}`)}`;
}
