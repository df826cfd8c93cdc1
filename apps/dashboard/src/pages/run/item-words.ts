/** One line for each kind of item: what it is, what it did, how it ended. */
import type { Item } from "@heddle/protocol/http";
import { brief, line } from "../../text/shown.ts";
import { countLines } from "../../text/diff-lines.ts";
import { folderName } from "../../words/figures.ts";

export interface ItemWords {
  readonly icon: string;
  /** In the font of code. */
  readonly isCode: boolean;
  readonly text: string;
  /** Dim, after the text. */
  readonly rest?: string;
  readonly end?: { readonly text: string; readonly isBad: boolean };
  readonly files?: readonly {
    readonly path: string;
    readonly added: number;
    readonly removed: number;
    readonly kind: string;
  }[];
  readonly isDim?: boolean;
}

export function itemWords(item: Item): ItemWords {
  switch (item.type) {
    case "commandExecution":
      return { icon: "dollar", isCode: true, text: brief(item.command), end: commandEnd(item) };
    case "fileChange":
      return {
        icon: "edit",
        isCode: true,
        text: "",
        files: item.changes.map(({ path, kind, diff }) => ({ path: line(path), kind, ...countLines(diff) })),
        ...statusEnd(item),
      };
    case "agentMessage":
      return { icon: "say", isCode: false, text: brief(item.text.replaceAll(/\*\*([^*\n]+)\*\*/g, "$1"), 600) };
    case "reasoning":
      return {
        icon: "think",
        isCode: false,
        isDim: true,
        text: brief(item.summary.join(" ") || (item.text ?? ""), 400),
      };
    case "plan": {
      const done = item.steps.filter(({ status }) => status === "completed").length;
      const now = item.steps.find(({ status }) => status !== "completed");
      return {
        icon: "plan",
        isCode: false,
        text: `Plan, ${done} of ${item.steps.length}:`,
        rest: brief(now?.text ?? "all done"),
      };
    }
    case "userMessage":
      return { icon: "hand", isCode: false, text: brief(messageText(item), 600) };
    case "toolCall":
      if (item.tool === "task_report") return { ...reportWords(item.arguments), ...statusEnd(item) };
      return { icon: "dollar", isCode: true, text: line(item.tool), rest: args(item.arguments), ...statusEnd(item) };
    case "mcpToolCall":
      return {
        icon: "dollar",
        isCode: true,
        text: `${line(item.server)}: ${line(item.tool)}`,
        rest: args(item.arguments),
        ...statusEnd(item),
      };
    case "collabToolCall":
      return {
        icon: "thread",
        isCode: false,
        text: `${item.tool} child thread`,
        rest: brief(item.prompt ?? item.threadIds.join(", ")),
        ...statusEnd(item),
      };
    case "proposedPlan":
      return { icon: "plan", isCode: false, text: "Proposes a plan:", rest: brief(item.text) };
    case "webSearch":
      return { icon: "search", isCode: false, text: "Searched the web:", rest: brief(item.search.query) };
    case "imageView":
      return { icon: "search", isCode: true, text: line(folderName(item.path)), ...statusEnd(item) };
    case "contextCompaction":
      return {
        icon: "think",
        isCode: false,
        text: `Context compacted, ${item.trigger}:`,
        rest: `${item.tokensBefore} tokens to ${item.tokensAfter ?? "?"}`,
      };
    case "notice":
      return {
        icon: item.level === "error" ? "failed" : "bell",
        isCode: false,
        text: brief(item.message, 600),
        ...(item.level === "error" ? { end: { text: line(item.code), isBad: true } } : {}),
      };
  }
}

function messageText(item: Extract<Item, { type: "userMessage" }>): string {
  return item.content.map((part) => (part.type === "text" ? part.text : "[image]")).join(" ");
}

const REPORTS: Readonly<Record<string, string>> = {
  done: "Reports that it is done:",
  blocked: "Reports that it is blocked:",
  progress: "Reports:",
};

/** What the agent tells the harness is words, not a call to look into. */
export function reportWords(given: unknown): ItemWords {
  const { status, summary, steps } = readReport(given);
  const text = REPORTS[status] ?? "Reports:";
  const done = steps.length === 0 ? "" : `${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")} done. `;
  return { icon: "flag", isCode: false, text, rest: `${done}${brief(summary, 600)}` };
}

export function readReport(given: unknown): {
  readonly status: string;
  readonly summary: string;
  readonly steps: readonly number[];
} {
  const of = isRecord(given) ? given : {};
  const { status, summary, steps_done: steps } = of;
  return {
    status: typeof status === "string" ? status : "",
    summary: typeof summary === "string" ? summary : "",
    steps: Array.isArray(steps) ? steps.filter((one) => typeof one === "number") : [],
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function args(given: unknown): string {
  const text = typeof given === "string" ? given : JSON.stringify(given);
  return text === undefined || text === "{}" ? "" : brief(text, 200);
}

type Command = Extract<Item, { type: "commandExecution" }>;

function commandEnd({ status, exitCode, signal }: Command): NonNullable<ItemWords["end"]> {
  if (status === "inProgress") return { text: "runs", isBad: false };
  if (status === "declined") return { text: "refused", isBad: true };
  if (status === "unknown") return { text: "unknown", isBad: true };
  if (signal !== undefined) return { text: "killed", isBad: true };
  if (exitCode !== undefined) return { text: `exit ${exitCode}`, isBad: exitCode !== 0 };
  return { text: status === "interrupted" ? "stopped" : status, isBad: status !== "completed" };
}

function statusEnd(item: { readonly status: string }): Pick<ItemWords, "end"> {
  switch (item.status) {
    case "completed":
      return {};
    case "inProgress":
      return { end: { text: "runs", isBad: false } };
    case "declined":
      return { end: { text: "refused", isBad: true } };
    default:
      return { end: { text: item.status, isBad: true } };
  }
}
