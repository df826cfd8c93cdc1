/**
 * The text of a review. Models that were trained to review answer with their findings as JSON, alone or inside text; it is
 * shown as text, in the layout of Codex. Any other answer stays as it is. Pure.
 */
import type { EventOf } from "../events/events.ts";

interface Finding {
  readonly title: string;
  readonly body: string;
  readonly code_location: {
    readonly absolute_file_path: string;
    readonly line_range: { readonly start: number; readonly end: number };
  };
}

interface ReviewOutput {
  readonly findings: readonly Finding[];
  readonly overall_correctness: string;
  readonly overall_explanation: string;
}

/** The answer of an agent as it is shown. An answer to an output schema keeps its shape. */
export function shownAnswer(turn: EventOf<"turn.admitted"> | undefined, answer: string): string {
  return turn?.task === "review" && turn.settings.outputSchema === undefined ? reviewText(answer) : answer;
}

export function reviewText(answer: string): string {
  const review = readReview(answer);
  if (review === undefined) return answer;
  const { findings } = review;
  const heading = findings.length > 1 ? "Full review comments:" : "Review comment:";
  const sections = [
    review.overall_explanation.trim(),
    ...(findings.length === 0 ? [] : [heading, ...findings.map(findingText)]),
  ].filter((section) => section !== "");
  return sections.length === 0 ? review.overall_correctness : sections.join("\n\n");
}

function findingText({ title, body, code_location: at }: Finding): string {
  const { start, end } = at.line_range;
  const lines = body.replace(/\r?\n$/, "").split(/\r?\n/);
  const indented = body === "" ? [] : lines.map((line) => `  ${line}`);
  return [`- ${title} — ${at.absolute_file_path}:${start}-${end}`, ...indented].join("\n");
}

function readReview(answer: string): ReviewOutput | undefined {
  return parse(answer) ?? parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1));
}

function parse(text: string): ReviewOutput | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isReview(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Without zod: every run prints through here, and must not load zod for it. */
function isReview(value: unknown): value is ReviewOutput {
  return (
    has(value, "overall_correctness", "string") &&
    has(value, "overall_explanation", "string") &&
    has(value, "overall_confidence_score", "number") &&
    has(value, "findings", "object") &&
    Array.isArray(value.findings) &&
    value.findings.every(isFinding)
  );
}

function isFinding(value: unknown): boolean {
  if (!has(value, "title", "string") || !has(value, "body", "string")) return false;
  if (!has(value, "confidence_score", "number") || !has(value, "code_location", "object")) return false;
  const { code_location: at } = value;
  if (!has(at, "absolute_file_path", "string") || !has(at, "line_range", "object")) return false;
  return has(at.line_range, "start", "number") && has(at.line_range, "end", "number");
}

interface Kinds {
  readonly string: string;
  readonly number: number;
  readonly object: object | null;
}

function has<V, K extends string, T extends keyof Kinds>(value: V, key: K, kind: T): value is V & Record<K, Kinds[T]> {
  return typeof value === "object" && value !== null && key in value && typeof Reflect.get(value, key) === kind;
}
