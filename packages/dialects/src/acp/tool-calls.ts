/** Items that are calls, as the protocol shows them. */
import { never, type Item, type ItemOf, type ItemStatus } from "@heddle/protocol";
import { changedLine, diffContent } from "./diffs.ts";
import type { AcpContent, AcpToolCall, AcpToolContent, AcpToolKind, AcpToolStatus } from "./shapes.ts";

/** undefined: it is shown otherwise. */
export function toolCallOf(item: Item): AcpToolCall | undefined {
  switch (item.type) {
    case "commandExecution":
      return commandCall(item);
    case "fileChange":
      return fileCall(item);
    case "toolCall":
      return {
        ...callOf(item, titleOfTool(item)),
        kind: KINDS[item.tool] ?? "other",
        rawInput: item.arguments,
        ...outputOf(item.error ?? item.output),
      };
    case "mcpToolCall":
      return {
        ...callOf(item, `${item.server}: ${item.tool}`),
        rawInput: item.arguments,
        ...(item.error === undefined ? mcpContent(item.result?.content ?? []) : outputOf(item.error)),
      };
    case "collabToolCall": {
      const said = item.children.flatMap(({ threadId, status, message }) => `${threadId}: ${status} ${message ?? ""}`);
      return {
        ...callOf(item, `${item.tool} agent${item.prompt === undefined ? "" : `: ${oneLine(item.prompt)}`}`),
        rawInput: { threadIds: item.threadIds, prompt: item.prompt },
        ...outputOf(item.error ?? said.join("\n")),
      };
    }
    case "imageView":
      return { ...callOf(item, `View ${baseOf(item.path)}`), kind: "read", locations: [{ path: item.path }] };
    case "webSearch": {
      const { query } = item.search;
      return { toolCallId: item.id, title: `Search the web: ${oneLine(query)}`, kind: "fetch", status: "completed" };
    }
    case "contextCompaction":
      return {
        ...callOf(item, "Compact the conversation"),
        kind: "think",
        ...outputOf(item.error),
      };
    case "userMessage":
    case "agentMessage":
    case "reasoning":
    case "plan":
    case "proposedPlan":
    case "notice":
      return undefined;
    default:
      return never(item);
  }
}

/** How Heddle's own tools look; another one is `other`. */
const KINDS: Readonly<Record<string, AcpToolKind>> = {
  read: "read",
  list: "read",
  skill: "read",
  view_image: "read",
  glob: "search",
  grep: "search",
  evidence_search: "search",
  hop: "switch_mode",
  edit: "edit",
  write: "edit",
};

interface Called {
  readonly id: string;
  readonly status: ItemStatus;
}

function callOf({ id, status }: Called, title: string): AcpToolCall {
  return { toolCallId: id, title, kind: "other", status: statusOf(status) };
}

function statusOf(status: ItemStatus): AcpToolStatus {
  if (status === "inProgress") return "in_progress";
  return status === "completed" ? "completed" : "failed";
}

function commandCall(item: ItemOf<"commandExecution">): AcpToolCall {
  const { exitCode, signal, durationMs, truncatedBytes, outputBlob } = item;
  const hasFailed = item.status === "completed" && exitCode !== undefined && exitCode !== 0;
  const isOver = item.status !== "inProgress";
  return {
    ...callOf(item, item.command),
    kind: "execute",
    ...(hasFailed ? { status: "failed" } : {}),
    locations: [{ path: item.cwd }],
    rawInput: { command: item.command, cwd: item.cwd },
    ...(isOver ? { rawOutput: { exitCode: exitCode ?? null, signal, durationMs, truncatedBytes, outputBlob } } : {}),
    content: [...consoleOutput(item.output), ...errorContent(item.error)],
  };
}

/** What a command has printed, as an editor sets it. */
export function consoleOutput(output: string): readonly AcpToolContent[] {
  if (output === "") return [];
  // A fence that the output cannot close.
  const longest = Math.max(2, ...[...output.matchAll(/`{3,}/g)].map(([mark]) => mark.length));
  const fence = "`".repeat(longest + 1);
  return [textContent(`${fence}console\n${output.replace(/\n$/, "")}\n${fence}`)];
}

function fileCall(item: ItemOf<"fileChange">): AcpToolCall {
  const { changes } = item;
  const [first] = changes;
  const isAll = (kind: string): boolean => changes.length > 0 && changes.every((change) => change.kind === kind);
  const verb = isAll("delete") ? "Delete" : isAll("add") ? "Create" : "Edit";
  const what = first !== undefined && changes.length === 1 ? baseOf(first.path) : `${changes.length} files`;
  const isMove = first?.movedTo !== undefined && first.diff === "";
  return {
    ...callOf(item, `${verb} ${what}`),
    kind: isAll("delete") ? "delete" : isMove ? "move" : "edit",
    content: [...changes.flatMap(diffContent), ...errorContent(item.error)],
    locations: changes.map((change) => {
      const line = changedLine(change);
      return { path: change.movedTo ?? change.path, ...(line === undefined ? {} : { line }) };
    }),
  };
}

function titleOfTool({ tool, arguments: args }: ItemOf<"toolCall">): string {
  const given = typeof args === "object" && args !== null ? Object.values(args) : [];
  const word = given.find((value): value is string => typeof value === "string" && value !== "");
  return word === undefined ? tool : `${tool} ${oneLine(word)}`;
}

function errorContent(error: string | undefined): readonly AcpToolContent[] {
  return error === undefined || error === "" ? [] : [textContent(error)];
}

function outputOf(text: string | undefined): { readonly content?: readonly AcpToolContent[] } {
  return text === undefined || text === "" ? {} : { content: [textContent(text)] };
}

function mcpContent(content: readonly unknown[]): { readonly content?: readonly AcpToolContent[] } {
  const shown = content.flatMap((part) => contentOf(part) ?? []);
  return shown.length === 0 ? {} : { content: shown.map((one) => ({ type: "content", content: one })) };
}

function contentOf(part: unknown): AcpContent | undefined {
  const { type, text, data, mimeType } = { ...(typeof part === "object" ? part : {}) } as Readonly<
    Record<string, unknown>
  >;
  if (type === "text" && typeof text === "string") return { type, text };
  if (type === "image" && typeof data === "string" && typeof mimeType === "string") return { type, data, mimeType };
  return undefined;
}

export function textContent(text: string): AcpToolContent {
  return { type: "content", content: { type: "text", text } };
}

const MAX_TITLE_CHARS = 120;

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX_TITLE_CHARS ? `${line.slice(0, MAX_TITLE_CHARS - 1)}…` : line;
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
