/** Questions that want more than a yes: of the agent to the user, and of MCP servers. */
import { z } from "zod";
import type { ApprovalAnswer, ApprovalQuestion } from "@heddle/protocol";
import type { CodexServerRequest } from "./shapes.ts";

interface AskingTurn {
  readonly threadId: string;
  readonly turnId: string;
}

export function userInputRequest(
  { itemId, questions }: Extract<ApprovalQuestion, { kind: "userInput" }>,
  { threadId, turnId }: AskingTurn,
): CodexServerRequest {
  return {
    method: "item/tool/requestUserInput",
    params: {
      threadId,
      turnId,
      itemId,
      // The user may always give another answer.
      questions: questions.map(({ id, header, question, options }) => {
        return { id, header, question, isOther: true, isSecret: false, options };
      }),
      isBlocking: true,
      autoResolutionMs: null,
    },
  };
}

export function elicitationRequest(
  { server, message, schema }: Extract<ApprovalQuestion, { kind: "elicitation" }>,
  { threadId, turnId }: AskingTurn,
): CodexServerRequest {
  return {
    method: "mcpServer/elicitation/request",
    params: { threadId, turnId, serverName: server, mode: "form", message, requestedSchema: schema, _meta: null },
  };
}

const Answers = z.object({ answers: z.record(z.string(), z.object({ answers: z.array(z.string()) })) });

/** An unreadable result, and answers to unknown questions, are ignored; the agent continues without them. */
export function userAnswerFrom(
  result: unknown,
  { questions }: Extract<ApprovalQuestion, { kind: "userInput" }>,
): ApprovalAnswer {
  const parsed = Answers.safeParse(result);
  const given = parsed.success ? Object.entries(parsed.data.answers) : [];
  const known = given.filter(([id]) => questions.some((question) => question.id === id));
  return { decision: "accept", answers: Object.fromEntries(known.map(([id, { answers }]) => [id, answers])) };
}

const Elicited = z.object({ action: z.enum(["accept", "decline", "cancel"]), content: z.unknown().optional() });

/** Cancel is sent to the server as decline; the turn continues. */
export function elicitedFrom(result: unknown): ApprovalAnswer {
  const parsed = Elicited.safeParse(result);
  if (!parsed.success || parsed.data.action !== "accept") return { decision: "decline" };
  return { decision: "accept", content: parsed.data.content ?? {} };
}
