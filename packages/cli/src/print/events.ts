/** One stored event as a person reads it in `heddle threads show`: when, what, by whom, and the few words that matter. */
import {
  type ClientAct,
  counted,
  type EventBody,
  type EventOf,
  type InputPart,
  isOutsideThreads,
  type Item,
  never,
  type StoredEvent,
  visibleLine,
} from "@heddle/protocol";
import { holdsText } from "@heddle/runtime/holds";
import { childText, collabText } from "./items.ts";
import { behind } from "./screen.ts";
import { localTime, duration, money, skippedText, type Style } from "./style.ts";
import { instructionSources, sourcesText } from "./instruction-sources.ts";

const MAX_TEXT_LINES = 12;

export function eventLines(event: StoredEvent, style: Style): readonly string[] {
  const time = localTime(event.at, "clock");
  const head = `${style.dim(`${String(event.version).padStart(4)} ${time}`)} ${style.bold(event.body.type)} ${style.dim(event.author)}`;
  const texts = textsOf(event.body).filter((text) => text !== "");
  // Behind words of Heddle on the first line; the others stand in the gutter.
  const [first, ...rest] = behind(texts.map((text) => text.trimEnd()).join("\n")).split("\n");
  const shown = rest.slice(0, MAX_TEXT_LINES);
  const more = rest.length - shown.length;
  return [
    first === undefined || first === "" ? head : `${head}  ${first}`,
    ...shown,
    ...(more > 0 ? [style.dim(`       … ${more} more lines, see --json`)] : []),
  ];
}

function textsOf(body: EventBody): readonly string[] {
  switch (body.type) {
    case "background.ran":
      return [`${body.purpose} with ${body.provider}/${body.model}: ${body.outcome}`];
    case "context.loaded":
    case "context.added":
    case "context.injected":
    case "context.compacted":
    case "context.left-out":
      return contextTexts(body);
    case "hook.ran":
      return [`${body.event} ${body.outcome}: ${body.command}`, body.reason ?? body.failure?.message ?? body.output];
    case "item.started":
    case "item.completed":
      return itemTexts(body.item);
    case "item.imported":
      return [`imported, ${importedText(body)}`, ...itemTexts(body.item)];
    case "item.checkpointed":
      return [`${body.itemId} ${body.channel} +${body.appended.length}`];
    case "model.requested":
      return [`${body.provider}/${body.model}, ${body.requestBytes} bytes`];
    case "model.retried":
      return [`${body.attempt}/${body.maxAttempts} ${body.cause.code}: ${body.cause.message}`];
    case "model.responded":
      return [
        `${body.stopReason}, ${body.output.length} parts, ${body.usage.inputTokens} in, ${body.usage.outputTokens} out`,
        body.skipped === undefined ? "" : skippedText(body.skipped),
      ];
    case "mcp.listed":
      return [`${body.server} (${body.transport}): ${body.tools.map(({ tool }) => tool).join(", ") || "no tools"}`];
    case "tool.intended":
      return [`${body.tool} ${JSON.stringify(body.arguments) ?? ""}`];
    case "tool.settled":
      return [
        `${body.tool} ${body.outcome}${body.failure === undefined ? "" : ` ${body.failure.code}: ${body.failure.message}`}`,
      ];
    case "tool.answered":
      return [`${body.itemId}${body.failure === undefined ? "" : ` ${body.failure.code}: ${body.failure.message}`}`];
    case "approval.requested":
      return [`${body.approvalId} ${JSON.stringify(body.question)}`];
    case "approval.resolved":
      return [`${body.approvalId} ${body.decision}${body.reason === undefined ? "" : `: ${body.reason}`}`];
    case "evidence.noted":
      return [`${body.claim} ${body.noteId}: ${body.text}`];
    case "evidence.imported":
      return [`${body.origin.author} ${body.origin.type} of key ${body.origin.keyId}: ${body.text}`];
    case "evidence.collected":
      return body.blobs.map(({ sha256, bytes, why }) => `${sha256} ${bytes} bytes, by ${why}`);
    case "message.sent":
    case "message.received":
      return [messageHead(body), body.text, ...body.inputs.map((input) => JSON.stringify(input))];
    case "message.settled":
      return [`${body.messageId} ${body.outcome}`, body.text ?? body.failure?.message ?? ""];
    default:
      if (isOfTurn(body)) return turnTexts(body);
      if (isOfBounds(body)) return boundsTexts(body);
      return isOutsideThreads(body) ? [JSON.stringify(body)] : threadTexts(body);
  }
}

type TurnEvent = Extract<EventBody, { type: `turn.${string}` }>;

function isOfTurn(body: EventBody): body is TurnEvent {
  return body.type.startsWith("turn.");
}

function turnTexts(body: TurnEvent): readonly string[] {
  switch (body.type) {
    case "turn.queued":
      return [`queued: ${roleText(body)}${inputText(body.input)}`];
    case "turn.dequeued":
      return [`will not be run: ${visibleLine(body.failure.message)}`];
    case "turn.admitted": {
      const { settings } = body;
      const sources = sourcesText(instructionSources(settings, body.context));
      const started = body.messages === undefined ? "" : `, started by ${body.messages.join(", ")}`;
      const bound = body.bound === undefined ? "" : `, bound by ${body.bound.id}`;
      return [
        `${settings.provider}/${settings.model}, ${settings.sandboxMode}${sources === "" ? "" : `, ${sources}`}${started}${bound}`,
        `${roleText(body)}${inputText(body.input)}`,
      ];
    }
    case "turn.started":
      return [
        `runner ${body.runner}, sandbox ${body.sandboxLevel}, envelope ${body.envelope.id} ${body.envelopeHash.slice(0, 12)}`,
      ];
    case "turn.steered":
      return [sourcesText(instructionSources({}, body.context)), `${roleText(body)}${inputText(body.input)}`];
    case "turn.settings-changed":
      return [changeText(body)];
    case "turn.interrupt-requested":
      return [`${body.failure.code}: ${body.failure.message}`];
    case "turn.completed": {
      const failure = body.failure === undefined ? "" : ` ${body.failure.code}: ${body.failure.message}`;
      const { inputTokens, outputTokens } = body.usage;
      return [
        `${body.status}${failure}, ${duration(body.durationMs)}, ${inputTokens} in, ${outputTokens} out, ${money(body.costUsd)}`,
      ];
    }
    case "turn.resumed":
      return [`process ${body.holder.pid}`];
  }
}

function importedText({ said, saidAt, line }: EventOf<"item.imported">): string {
  return `by ${said === "user" ? "the user" : "the agent"}${saidAt === undefined ? "" : ` at ${localTime(saidAt)}`}, line ${line}`;
}

/** What an input is to the agent, where it is no command of a user. */
function roleText({ role, source }: Pick<EventOf<"turn.steered">, "role" | "source">): string {
  const from = source === undefined ? "" : `from thread ${source.threadId}: `;
  return role === undefined || role === "command" ? from : `${role} ${from}`;
}

function messageHead(body: EventOf<"message.sent" | "message.received">): string {
  const { messageId, kind, role } = body;
  const way =
    body.type === "message.sent" ? `to ${body.to}` : `from ${body.from?.name ?? body.from?.threadId ?? "a user"}`;
  return `${kind} ${role} ${way}, ${messageId}`;
}

/** What holds a turn inside its bounds, and what went beyond them. */
type BoundsEvent = Extract<
  EventBody,
  {
    type:
      | "sandbox.opened"
      | "path.violated"
      | `hop.${string}`
      | `envelope.${string}`
      | `gate.${string}`
      | `network.${string}`
      | `files.${string}`
      | `agent.${string}`;
  }
>;

function isOfBounds(body: EventBody): body is BoundsEvent {
  return /^(sandbox|hop|path|envelope|gate|network|files|agent)\./.test(body.type);
}

function comparedTexts(body: EventOf<"files.compared">): readonly string[] {
  const { files, folder, changed, more = 0, notExamined } = body;
  const bound = notExamined === undefined ? "" : `, not all of them looked at (${notExamined})`;
  return [
    `${files} files in ${folder}, ${changed.length + more} changed${bound}`,
    ...changed.map(({ path, change }) => `${change} ${path}`),
  ];
}

function boundsTexts(body: BoundsEvent): readonly string[] {
  switch (body.type) {
    case "sandbox.opened":
      return [`${body.level}, ${holdsText(body.holds)}`];
    case "envelope.entered":
      return [
        `${body.envelope.id} (${body.sandboxLevel}) by ${body.cause}${body.ceiling === undefined ? "" : `, ceiling ${body.ceiling.id}`}`,
      ];
    case "envelope.left":
      return [`${body.envelopeHash.slice(0, 8)} by ${body.cause} after ${body.calls} calls`];
    case "envelope.hop-refused":
      return [`${body.from} to ${body.hop.to} by ${body.hop.channel}: ${body.failure.code}: ${body.failure.message}`];
    case "gate.passed":
    case "gate.refused":
      return [
        `${body.gate.name}${body.hop === undefined ? "" : ` on the way to ${body.hop.to}`}: ${body.path.map(({ kind, found }) => `${kind}: ${found}`).join("; ")}`,
      ];
    case "hop.taken":
      return [
        `${body.scope} ${body.callId}: ${body.to.id} (${body.sandboxLevel}), writes ${body.to.writeRoots.join(", ")}`,
      ];
    case "hop.refused":
      return [`${body.callId} ${body.failure.code}: ${body.failure.message}`];
    case "network.used":
      return [
        `${body.host}:${body.port} ${counted(body.requests, "request")}, ${body.bytesSent} bytes sent, ${body.bytesReceived} received`,
      ];
    case "files.compared":
      return comparedTexts(body);
    case "network.refused":
      return [`${body.host}:${body.port} ${body.reason}, ${body.count} times`];
    case "agent.started":
      return [
        `${body.command.join(" ")} as process ${body.process.pid}, ${body.sandboxLevel}, ${body.transcript ?? "in a terminal"}`,
      ];
    case "agent.connected":
      return [
        `${body.runner} ${body.handle} ${body.origin}`,
        body.resumeCommand === undefined ? "" : `take over: ${body.resumeCommand.join(" ")}`,
      ];
    case "agent.ended":
      return [agentEnd(body)];
    case "path.violated":
      return [`${body.path}${body.quarantinedTo === undefined ? "" : ` → ${body.quarantinedTo}`}`];
  }
}

function agentEnd({ runner, pid, end, exitCode, signal, failure }: EventOf<"agent.ended">): string {
  const how = exitCode === undefined ? (signal ?? "") : `exit code ${exitCode}`;
  const why = failure === undefined ? "" : `${failure.code}: ${failure.message}`;
  return [`${runner}, process ${pid}: ${end}`, how, why].filter((part) => part !== "").join(", ");
}

function contextTexts(body: Extract<EventBody, { type: `context.${string}` }>): readonly string[] {
  switch (body.type) {
    case "context.loaded":
      return [
        body.sources.map(({ path, bytes }) => (bytes === undefined ? path : `${path} ${bytes} bytes`)).join(", "),
      ];
    case "context.added":
      return [`${body.source} ${body.name}`, body.text];
    case "context.injected":
      return [`${body.entries.length} entries`, JSON.stringify(body.entries)];
    case "context.compacted":
      return [`${body.trigger}, ${body.tokensBefore} → ${body.tokensAfter} tokens`, body.summary];
    case "context.left-out":
      return [`${body.parts}, refused by ${body.provider}/${body.model}`, body.failure.message];
  }
}

/** About the thread itself, or beside its turns. */
type ThreadEvent = Extract<EventBody, { type: `thread.${string}` | `client.${string}` }>;

function threadTexts(body: ThreadEvent): readonly string[] {
  switch (body.type) {
    case "client.intended":
      return [`${body.client} ${body.actId}: ${actTexts(body.act)}`];
    case "client.settled":
      return [`${body.actId} ${body.outcome}${body.exitCode === undefined ? "" : ` (exit code ${body.exitCode})`}`];
    case "thread.created":
      return [
        `${body.workspace} (${body.origin})${body.title === undefined ? "" : ` ${visibleLine(body.title)}`}`,
        ...(body.parent === undefined ? [] : [`child of ${body.parent.threadId} (turn ${body.parent.turnId})`]),
      ];
    case "thread.moved":
      return [body.workspace];
    case "thread.imported":
      return [
        `${body.items} items from ${body.file}`,
        `${body.lines} lines, ${body.bytes} bytes, SHA-256 ${body.sha256}`,
      ];
    case "thread.named":
      return [visibleLine(body.name)];
    case "thread.agent-named":
      return [body.name ?? "no name"];
    case "thread.archived":
      return [body.isArchived ? "archived" : "no longer archived"];
    case "thread.settings-changed":
      return [Object.keys(body.changes).join(", ")];
    case "thread.metadata-changed":
      return [JSON.stringify(body.gitInfo)];
    case "thread.goal-changed":
      return body.goal === null ? ["cleared"] : [`${body.goal.status}: ${body.goal.objective}`];
    case "thread.attachment-changed": {
      const what = visibleLine(`${body.attachmentType} ${body.identityKey}`);
      return [body.payload === undefined ? `${what}, removed` : what];
    }
    case "thread.tools-declared":
      return [body.tools.map(({ name }) => visibleLine(name)).join(", ")];
    case "thread.reverted":
      return [`history is reverted to before turn ${body.beforeTurnId}`];
    case "thread.deleted":
      return [visibleLine(body.reason)];
    default:
      return never(body);
  }
}

function inputText(parts: readonly InputPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : `[${part.mediaType}]`)).join("\n");
}

function itemTexts(item: Item): readonly string[] {
  switch (item.type) {
    case "userMessage":
      return [item.type, `${roleText(item)}${inputText(item.content)}`];
    case "agentMessage":
      return [item.type, item.text];
    case "reasoning":
      return [item.type, item.summary.join("\n")];
    case "commandExecution":
      return [
        `${item.status}${item.exitCode === undefined ? "" : ` exit ${item.exitCode}`}: ${item.command}`,
        item.error ?? item.output,
      ];
    case "fileChange":
      return [
        `${item.type} ${item.status}`,
        ...item.changes.map(({ kind, path }) => `${kind} ${path}`),
        item.error ?? "",
      ];
    case "toolCall":
      return [`${item.tool} ${item.status} ${JSON.stringify(item.arguments) ?? ""}`, item.error ?? item.output ?? ""];
    case "mcpToolCall":
      return [
        `${item.server}.${item.tool} ${item.status} ${JSON.stringify(item.arguments) ?? ""}`,
        item.error ?? JSON.stringify(item.result?.content ?? []),
      ];
    case "collabToolCall":
      return [`${collabText(item)} ${item.status}`, ...item.children.map(childText), item.error ?? ""];
    case "plan":
      return [`${item.type} ${item.status}`, ...item.steps.map(({ status, text }) => `${status}: ${text}`)];
    case "proposedPlan":
      return [`${item.type} ${item.status}`, item.text];
    case "webSearch":
      return [`${item.type}: ${item.search.query}`];
    case "imageView":
      return [`${item.type} ${item.status}: ${item.path}${item.error === undefined ? "" : ` ${item.error}`}`];
    case "contextCompaction":
      return [`${item.type} ${item.status}${item.error === undefined ? "" : `: ${item.error}`}`];
    case "notice":
      return [`${item.level} ${item.code}: ${item.message}`];
    default:
      return never(item);
  }
}

function actTexts(act: ClientAct): string {
  if (act.kind === "mcpTool") return `calls ${act.tool} of the MCP server ${act.server}`;
  if (act.kind === "endProcess") return `ends process ${act.pid}: ${act.command}`;
  if (act.kind === "input") {
    const said = act.text === "" ? "" : `types ${JSON.stringify(act.text)} into `;
    return act.isEnd ? `${said === "" ? "" : `${said}and `}ends the input of ${act.command}` : `${said}${act.command}`;
  }
  return `runs ${act.argv.join(" ")} in ${act.cwd}${act.isConfined ? "" : ", with full access"}`;
}

function changeText({ model, effort, summary, serviceTier }: EventOf<"turn.settings-changed">): string {
  const changes = Object.entries({ model, effort, summary, serviceTier }).filter(([, value]) => value !== undefined);
  return changes.map(([key, value]) => `${key} ${value}`).join(", ");
}
