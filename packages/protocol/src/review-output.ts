/**
 * What a review says, in words. Models that were trained to review answer with their findings as JSON, alone or among
 * words; people and programs get it as text, laid out as Codex does. An answer in words stays as it is. Pure.
 */
import { z } from "zod";
import type { EventOf } from "./events.ts";

const Finding = z.object({
  title: z.string(),
  body: z.string(),
  confidence_score: z.number(),
  priority: z.number().int().nullish(),
  code_location: z.object({
    absolute_file_path: z.string(),
    line_range: z.object({ start: z.number().int(), end: z.number().int() }),
  }),
});
type Finding = z.infer<typeof Finding>;

const ReviewOutput = z.object({
  findings: z.array(Finding),
  overall_correctness: z.string(),
  overall_explanation: z.string(),
  overall_confidence_score: z.number(),
});
type ReviewOutput = z.infer<typeof ReviewOutput>;

/** What an agent said in a turn, as it is shown. Whoever asks for an answer of some shape gets it in that shape. */
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
  // Nothing but a verdict is still a verdict.
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
    return ReviewOutput.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
