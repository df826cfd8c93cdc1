/** Questions that wait for an answer, with whom they hold up and who may answer them. */
import type { Journal, OpenApprovalRow } from "@heddle/journal";
import { defined, type ApprovalQuestion, type Decision } from "@heddle/protocol";
import type { Approval } from "@heddle/protocol/http";
import type { z } from "zod";
import { isOwner, mayOnlyDecline } from "../access/full-access.ts";
import type { DoorCall } from "./route.ts";
import { scopeAllows, type Principal } from "../access/principals.ts";
import { taskIdOf } from "./thread-tasks.ts";

type Shown = z.output<typeof Approval>;

/** Of one thread or of all, oldest first. */
export async function openApprovals(
  { context: { heddle }, principal }: Pick<DoorCall, "principal"> & { context: Pick<DoorCall["context"], "heddle"> },
  threadId?: string,
): Promise<Shown[]> {
  const { journal } = heddle;
  const shown: Shown[] = [];
  for (const { row, question, answerBy } of await openQuestions(journal, threadId)) {
    const { id, turnId, version, askedAt } = row;
    const taskId = await taskIdOf(journal, row.threadId);
    const task = taskId === undefined ? undefined : await journal.tasks.get(taskId);
    const settings = isOwner(principal) ? undefined : await heddle.lastSettings(row.threadId);
    shown.push({
      id,
      threadId: row.threadId,
      turnId,
      seq: version,
      askedAt,
      question,
      ...defined({ answerBy, taskId, taskName: task?.spec.name }),
      mayAnswer: decisionsFor(principal, question, settings?.sandboxMode),
    });
  }
  return shown;
}

interface OpenQuestion {
  readonly row: OpenApprovalRow;
  readonly question: ApprovalQuestion;
  readonly answerBy: number | undefined;
}

export async function openQuestions(journal: Journal, threadId?: string): Promise<readonly OpenQuestion[]> {
  const questions: OpenQuestion[] = [];
  for (const row of await journal.threads.openApprovals(threadId)) {
    const [event] = await journal.read({ stream: row.threadId, after: row.version - 1, limit: 1 });
    if (event?.body.type !== "approval.requested") continue;
    questions.push({ row, question: event.body.question, answerBy: event.body.answerBy });
  }
  return questions;
}

function decisionsFor(
  principal: Principal | undefined,
  question: ApprovalQuestion,
  sandboxMode: string | undefined,
): Decision[] {
  if (principal === undefined || !scopeAllows(principal.role, "write")) return [];
  if (!isOwner(principal) && mayOnlyDecline(question, sandboxMode)) return ["decline", "cancel"];
  const isAnswered = question.kind === "userInput" || question.kind === "elicitation";
  return isAnswered ? ["accept", "decline", "cancel"] : ["accept", "acceptForThread", "decline", "cancel"];
}
