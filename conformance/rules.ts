/**
 * Differences that hold for every case. Each is taken out of a run's lines before they are compared, has its reason, and
 * fails when it never applies. What a rule takes out of Heddle's lines is only ever something added or reworded.
 */
import type { Line } from "./compare.ts";

export interface Rule {
  readonly id: string;
  readonly side: "codex" | "heddle";
  readonly what: string;
  readonly why: string;
  apply(lines: readonly Line[]): readonly Line[];
}

export const RULES: readonly Rule[] = [
  {
    id: "end-of-refused-run",
    side: "heddle",
    what: "a run that is refused before its turn prints `error` and `turn.failed`; Codex prints nothing on stdout",
    why: "whoever reads the events learns how every run ended, also one that never began",
    apply: (lines) =>
      lines[0]?.type === "thread.started" ? lines : lines.filter(({ type }) => !/^(error|turn\.failed)$/.test(type)),
  },
  {
    id: "usage-of-turn",
    side: "heddle",
    what: "`usage` is that of this turn; that of the whole thread, which Codex calls `usage`, is `thread_usage`",
    why: "adding up what turns report gives what was used; `thread_usage` is held to Codex's figure here",
    apply: (lines) =>
      lines.map((line) =>
        "thread_usage" in line ? { ...without(line, ["thread_usage"]), usage: line["thread_usage"] } : line,
      ),
  },
  added("turn.started", ["turn_id", "sandbox"], "the turn by its name, and the walls that really stand around it"),
  added("turn.completed", ["cost_usd", "duration_ms"], "what the turn cost and how long it took"),
  added("turn.failed", ["status", "usage", "cost_usd", "duration_ms"], "a failed turn has used something too"),
  added("error", ["code", "details"], "programs decide by a code, not by words"),
  {
    id: "sent-again",
    side: "heddle",
    what: "`heddle.retry`: a request met no answer and is sent again",
    why: "every retry is an event; Codex sends such a request again without a word, as often",
    apply: (lines) => lines.filter(({ type }) => type !== "heddle.retry"),
  },
  {
    id: "fields-of-items",
    side: "heddle",
    what: "an item may also carry `code`, `error`, `outcome` and `is_partial`",
    why: "why it failed, where Codex only says that it did",
    apply: onItems((item) => without(item, ["code", "error", "outcome", "is_partial"])),
  },
  ...(["heddle", "codex"] as const).map((side): Rule => ({
    id: `words-of-${side}`,
    side,
    what: `the words of ${side === "heddle" ? "Heddle's" : "Codex's"} error messages`,
    why: "they say what happened here and what to do next; how often something is tried again is compared",
    apply: (lines) => onItems(blankItem)(lines).map(blankLine),
  })),
];

/** The lines of one side as they are compared; `onUse` hears of each rule that changed something. */
export function applyRules(side: Rule["side"], lines: readonly Line[], onUse: (id: string) => void): readonly Line[] {
  return RULES.filter((rule) => rule.side === side).reduce((before, rule) => {
    const after = rule.apply(before);
    if (JSON.stringify(after) !== JSON.stringify(before)) onUse(rule.id);
    return after;
  }, lines);
}

function added(type: string, fields: readonly string[], why: string): Rule {
  return {
    id: `fields-of-${type}`,
    side: "heddle",
    what: `\`${type}\` also carries ${fields.map((field) => `\`${field}\``).join(", ")}`,
    why,
    apply: (lines) => lines.map((line) => (line.type === type ? without(line, fields) : line)),
  };
}

function onItems(change: (item: Fields) => Fields): (lines: readonly Line[]) => readonly Line[] {
  return (lines) =>
    lines.map((line) => {
      const item = line["item"];
      return typeof item === "object" && item !== null ? { ...line, item: change({ ...item }) } : line;
    });
}

function blankItem(item: Fields): Fields {
  if (item["type"] === "error") return { ...item, message: blankWords(item["message"]) };
  // A command that could not be started has printed nothing; what stands there is the reason.
  const neverRan = item["type"] === "command_execution" && item["exit_code"] === -1;
  return neverRan ? { ...item, aggregated_output: blankWords(item["aggregated_output"]) } : item;
}

function blankLine(line: Line): Line {
  if (line.type === "error") return { ...line, message: blankWords(line["message"]) };
  const error = line["error"];
  if (line.type !== "turn.failed" || typeof error !== "object" || error === null) return line;
  const message = "message" in error ? error.message : undefined;
  return { ...line, error: { ...without({ ...error }, ["code", "details"]), message: blankWords(message) } };
}

/** A message that is missing or empty stays so, and shows. */
function blankWords(message: unknown): unknown {
  if (typeof message !== "string" || message === "") return message;
  return /^Reconnecting\.\.\. (\d+\/\d+|waiting for network)/.exec(message)?.[0] ?? "{words}";
}

type Fields = Readonly<Record<string, unknown>>;

function without<T extends Fields>(fields: T, names: readonly string[]): T {
  const kept = Object.entries(fields).filter(([name]) => !names.includes(name));
  // Only optional fields are named; what is left is still a T.
  return Object.fromEntries(kept) as T;
}
