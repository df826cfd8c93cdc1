/**
 * What an answer may contain. Questions of the agent and of MCP servers are approvals with content: they are stored,
 * answered and cancelled like all others.
 */
import { HeddleError, type ApprovalQuestion, type ApprovalAnswer } from "@heddle/protocol";

const MAX_ANSWERS = 20;
const MAX_ANSWER_CHARS = 10_000;

/** Refuses what does not belong to the question. */
export function checkAnswer(question: ApprovalQuestion, { decision, answers, content, granted }: ApprovalAnswer): void {
  if (answers !== undefined) checkAnswers(question, answers);
  if (content !== undefined && question.kind !== "elicitation") {
    throw new HeddleError("usage.invalid", "only a question from an MCP server can be answered with content");
  }
  if (granted !== undefined && question.kind !== "permissions") {
    throw new HeddleError("usage.invalid", "only a permission request can be granted in part");
  }
  if (decision === "acceptForThread" && (question.kind === "userInput" || question.kind === "elicitation")) {
    throw new HeddleError("usage.invalid", "this question can only be accepted, declined or cancelled");
  }
}

function checkAnswers(question: ApprovalQuestion, answers: NonNullable<ApprovalAnswer["answers"]>): void {
  if (question.kind !== "userInput") {
    throw new HeddleError("usage.invalid", "this question takes a decision, not answers");
  }
  const ids = question.questions.map(({ id }) => id);
  for (const [id, given] of Object.entries(answers)) {
    if (!ids.includes(id)) {
      throw new HeddleError("usage.invalid", `there is no question ${id.slice(0, 100)}; there are: ${ids.join(", ")}`);
    }
    if (given.length > MAX_ANSWERS || given.some((text) => text.length > MAX_ANSWER_CHARS)) {
      const most = `${MAX_ANSWERS} answers of ${MAX_ANSWER_CHARS} characters`;
      throw new HeddleError("usage.invalid", `question ${id} takes at most ${most}`);
    }
  }
}
