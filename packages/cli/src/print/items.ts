/** One item in words, for people: the line that announces it, and what is said when it is over. */
import {
  never,
  visibleLine,
  type ChildState,
  type FileChangeEntry,
  type Item,
  type ItemOf,
  type TurnStatus,
} from "@heddle/protocol";
import { behind, GUTTER, marked } from "./screen.ts";
import { duration, type Style } from "./style.ts";

/** A patch is shown so far; the whole is in the record and in the folder. */
const MAX_DIFF_LINES = 40;
const MAX_ARGUMENT_CHARS = 200;

/** undefined: nothing announces this item. */
export function itemHead(item: Item, style: Style): string | undefined {
  switch (item.type) {
    case "commandExecution":
      return `${style.bold("$")} ${style.bold(behind(item.command))}`;
    case "toolCall":
      return style.dim(`· ${visibleLine(item.tool)} ${shortJson(item.arguments)}`);
    case "mcpToolCall":
      return style.dim(`· ${visibleLine(item.server)}.${visibleLine(item.tool)} ${shortJson(item.arguments)}`);
    case "collabToolCall":
      return style.dim(`· ${collabText(item)}`);
    case "webSearch":
      return style.dim(`· web search: ${visibleLine(item.search.query)}`);
    case "imageView":
      return style.dim(`· view ${visibleLine(item.path)}`);
    case "plan":
    case "proposedPlan":
      return style.dim("· plan");
    case "contextCompaction":
      return style.dim(`· compacting ${item.tokensBefore} tokens of context`);
    case "agentMessage":
    case "reasoning":
      return "";
    case "userMessage":
    case "fileChange":
    case "notice":
      return undefined;
    default:
      return never(item);
  }
}

/** What a turn does while no item runs. */
export const WAITING = "waiting for the model";

/** A running item in a few words, for the line that shows progress. */
export function runningText(item: Item): string {
  switch (item.type) {
    case "commandExecution":
      return `$ ${visibleLine(item.command)}`;
    case "toolCall":
      return visibleLine(item.tool);
    case "mcpToolCall":
      return `${visibleLine(item.server)}.${visibleLine(item.tool)}`;
    case "collabToolCall":
      return collabText(item);
    case "contextCompaction":
      return "compacting the context";
    default:
      return "the model answers";
  }
}

const COLLAB = { start: "start an agent", send: "send to", wait: "wait for", close: "close" } as const;

/** A call for child threads in a few words. */
export function collabText({ tool, threadIds, prompt }: ItemOf<"collabToolCall">): string {
  const about = prompt === undefined ? "" : `: ${visibleLine(prompt).slice(0, MAX_ARGUMENT_CHARS)}`;
  return `${[COLLAB[tool], ...(tool === "start" ? [] : threadIds.map(visibleLine))].join(" ")}${about}`;
}

export function childText({ threadId, status, message }: ChildState): string {
  const said = message === undefined ? "" : `: ${visibleLine(message).slice(0, MAX_ARGUMENT_CHARS)}`;
  return `${visibleLine(threadId)} ${status}${said}`;
}

export function itemTail(item: Item, style: Style): readonly string[] {
  switch (item.type) {
    case "commandExecution":
      return [commandEnd(item, style)];
    case "fileChange":
      return [...item.changes.flatMap((change) => changeLines(change, style)), ...problem(item, style)];
    case "toolCall":
    case "mcpToolCall":
    case "plan":
    case "imageView":
    case "contextCompaction":
      return problem(item, style);
    case "collabToolCall":
      return [...item.children.map((child) => style.dim(`  ${childText(child)}`)), ...problem(item, style)];
    case "webSearch":
      return [];
    case "notice":
      return [
        item.level === "error"
          ? style.red(`error: ${behind(item.message)}`)
          : style.yellow(`warning: ${behind(item.message)}`),
      ];
    case "proposedPlan":
      return item.status === "completed" ? [] : [style.dim("(cut off)")];
    case "agentMessage":
      return item.isPartial === true ? [style.dim("(cut off)")] : sourceLines(item, style);
    case "reasoning":
    case "userMessage":
      return [];
    default:
      return never(item);
  }
}

function sourceLines({ sources = [] }: ItemOf<"agentMessage">, style: Style): readonly string[] {
  return sources.map(({ url, title }) =>
    style.dim(`· source: ${visibleLine(title === undefined ? url : `${title} ${url}`)}`),
  );
}

export function planLines(item: ItemOf<"plan">): readonly string[] {
  const mark = { pending: "[ ]", inProgress: "[>]", completed: "[x]" };
  return item.steps.map((step) => `  ${mark[step.status]} ${visibleLine(step.text)}`);
}

export function resultLine(status: TurnStatus, detail: string, style: Style): string {
  if (status === "completed") return style.bold(marked(`completed${detail}`));
  return status === "failed" ? style.red(marked(`failed${detail}`)) : style.yellow(marked(`interrupted${detail}`));
}

function wholeOutput({ outputBlob, outputError, outputFile }: ItemOf<"commandExecution">): string {
  if (outputBlob !== undefined) return `, whole output: heddle evidence show blob:${outputBlob}`;
  if (outputError !== undefined) return `, ${visibleLine(outputError)}`;
  return outputFile === undefined ? "" : `, whole output in ${visibleLine(outputFile)}`;
}

function commandEnd(item: ItemOf<"commandExecution">, style: Style): string {
  const took = item.durationMs === undefined ? "" : ` in ${duration(item.durationMs)}`;
  const whole = wholeOutput(item);
  const cut = item.truncatedBytes === undefined ? "" : `, ${item.truncatedBytes} bytes not shown${whole}`;
  const why = item.error === undefined ? "" : `: ${behind(item.error)}`;
  const end =
    item.signal === undefined
      ? item.exitCode === undefined
        ? item.processId === undefined
          ? item.status
          : "still running"
        : `exit ${item.exitCode}`
      : `ended by ${item.signal}`;
  const isGood = item.exitCode === 0 || (item.processId !== undefined && item.exitCode === undefined);
  const text = `  ${end}${took}${cut}${why}`;
  return isGood ? style.dim(text) : style.red(text);
}

function changeLines(change: FileChangeEntry, style: Style): readonly string[] {
  const word = { add: "added", update: "changed", delete: "deleted" }[change.kind];
  const to = change.movedTo === undefined ? "" : ` → ${visibleLine(change.movedTo)}`;
  const lines = change.diff.split("\n").filter((line) => !/^(---|\+\+\+|diff |index )/.test(line) && line !== "");
  const shown = lines.slice(0, MAX_DIFF_LINES).map((line) => diffLine(line, style));
  const more = lines.length - shown.length;
  return [
    `${style.bold(word)} ${visibleLine(change.path)}${to}`,
    ...shown,
    ...(more > 0 ? [style.dim(`  … ${more} more lines`)] : []),
  ];
}

function diffLine(line: string, style: Style): string {
  const text = `${GUTTER}${visibleLine(line)}`;
  if (line.startsWith("+")) return style.bold(text);
  return line.startsWith("-") ? style.red(text) : style.dim(text);
}

function problem(
  item: { readonly status: string; readonly error?: string | undefined },
  style: Style,
): readonly string[] {
  if (item.status === "completed" && item.error === undefined) return [];
  return [style.red(`  ${item.status}${item.error === undefined ? "" : `: ${behind(item.error)}`}`)];
}

function shortJson(value: unknown): string {
  const text = visibleLine(JSON.stringify(value) ?? "");
  return text.length > MAX_ARGUMENT_CHARS ? `${text.slice(0, MAX_ARGUMENT_CHARS)}…` : text;
}
