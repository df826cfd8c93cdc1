/** What a person types for an answer to a question of a turn, and what it means. */
import {
  jsonProblem,
  never,
  visibleLine,
  type ApprovalAnswer,
  type ApprovalQuestion,
  type UserAnswers,
} from "@heddle/protocol";

export interface OpenQuestion {
  readonly approvalId: string;
  readonly question: ApprovalQuestion;
  /** Those of its questions that are answered. */
  readonly answers: UserAnswers;
}

export type Given =
  | { readonly kind: "answer"; readonly answer: ApprovalAnswer }
  /** One of several questions is answered. */
  | { readonly kind: "more"; readonly question: OpenQuestion }
  | { readonly kind: "unclear"; readonly message: string };

/** What stands before the cursor. */
export function hintOf({ question, answers }: OpenQuestion): string {
  switch (question.kind) {
    case "command":
    case "fileChange":
    case "tool":
    case "permissions":
      return "allow? y, n or a (always)";
    case "elicitation":
      return "JSON, or n to decline";
    case "userInput": {
      const next = question.questions.find(({ id }) => !Object.hasOwn(answers, id));
      const options = next?.options.map(({ label }, index) => `${index + 1} ${visibleLine(label)}`).join(", ") ?? "";
      return `${visibleLine(next?.header ?? "answer")}${options === "" ? "" : `: ${options}`}`;
    }
    default:
      return never(question);
  }
}

export function answerOf(open: OpenQuestion, text: string): Given {
  const { question } = open;
  if (question.kind === "userInput") return told(open, question, text);
  const word = text.toLowerCase();
  if (word === "n" || word === "no") return { kind: "answer", answer: { decision: "decline" } };
  if (question.kind === "elicitation") return content(text);
  if (word === "y" || word === "yes") return { kind: "answer", answer: { decision: "accept" } };
  if (word === "a" || word === "always") return { kind: "answer", answer: { decision: "acceptForThread" } };
  return { kind: "unclear", message: "type y to allow it once, a for the whole thread, n to decline" };
}

function content(text: string): Given {
  try {
    return { kind: "answer", answer: { decision: "accept", content: JSON.parse(text) } };
  } catch {
    return { kind: "unclear", message: `this is no JSON: ${jsonProblem(text)}; n declines` };
  }
}

function told(
  open: OpenQuestion,
  { questions }: Extract<ApprovalQuestion, { kind: "userInput" }>,
  text: string,
): Given {
  const [next, ...rest] = questions.filter(({ id }) => !Object.hasOwn(open.answers, id));
  if (next === undefined) return { kind: "answer", answer: { decision: "accept", answers: open.answers } };
  const label = /^\d+$/.test(text) ? next.options[Number(text) - 1]?.label : undefined;
  const answers = { ...open.answers, [next.id]: [label ?? text] };
  if (rest.length > 0) return { kind: "more", question: { ...open, answers } };
  return { kind: "answer", answer: { decision: "accept", answers } };
}
