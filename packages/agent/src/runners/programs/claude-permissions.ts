/** What Claude Code asks before a call, put to Heddle's policy. Each question is withdrawn when it says so. */
import type { ApprovalQuestion } from "@heddle/protocol";
import { isKnownReadOnly } from "@heddle/tools/lines";
import { z } from "zod";
import { toolItem, type ClaudeItems } from "./claude-items.ts";
import type { Act, ProgramTurn } from "./conversation.ts";

const CanUse = z.object({
  subtype: z.literal("can_use_tool"),
  tool_name: z.string(),
  input: z.record(z.string(), z.unknown()),
  tool_use_id: z.string(),
});
const Questions = z.object({
  questions: z.array(
    z.object({
      question: z.string(),
      header: z.string().default(""),
      options: z.array(z.object({ label: z.string(), description: z.string().default("") })).default([]),
    }),
  ),
});

export interface ClaudePermissions {
  /** Undefined: it is about something else. */
  answer(requestId: string, request: unknown): Promise<object> | undefined;
  cancel(requestId: string | undefined): void;
}

export function createClaudePermissions(turn: ProgramTurn, items: ClaudeItems): ClaudePermissions {
  const withdrawn = new Map<string, () => void>();

  async function canUse(
    requestId: string,
    { tool_name: tool, input, tool_use_id: callId }: z.infer<typeof CanUse>,
  ): Promise<object> {
    const itemId = await items.beginCall(callId, tool, input);
    const { promise: gone, resolve } = Promise.withResolvers<undefined>();
    withdrawn.set(requestId, () => resolve(undefined));
    const { question, act } = questionOf({ tool, input, callId, itemId, workspace: turn.workspace });
    const answer = await Promise.race([turn.decide(question, act), gone]);
    withdrawn.delete(requestId);
    if (answer === undefined) return { behavior: "deny", message: "withdrawn" };
    const isYes = answer.decision === "accept" || answer.decision === "acceptForThread";
    if (!isYes) {
      items.refused(callId);
      const message = answer.reason ?? "the user declined it";
      return { behavior: "deny", message, interrupt: answer.decision === "cancel" };
    }
    const answers = answer.answers === undefined ? {} : { answers: joined(question, answer.answers) };
    // What is allowed for the thread Heddle remembers itself.
    return { behavior: "allow", updatedInput: { ...input, ...answers } };
  }

  return {
    answer(requestId, request) {
      const found = CanUse.safeParse(request);
      return found.success ? canUse(requestId, found.data) : undefined;
    },
    cancel: (requestId) => withdrawn.get(requestId ?? "")?.(),
  };
}

/** It knows its questions by their text. */
function joined(
  question: ApprovalQuestion,
  answers: Readonly<Record<string, readonly string[]>>,
): Record<string, string> {
  if (question.kind !== "userInput") return {};
  return Object.fromEntries(question.questions.map(({ id, question: text }) => [text, (answers[id] ?? []).join(", ")]));
}

interface Call {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly callId: string;
  readonly itemId: string;
  readonly workspace: string;
}

function questionOf({ tool, input, callId, itemId, workspace }: Call): { question: ApprovalQuestion; act: Act } {
  const item = toolItem({ tool, input, callId, workspace })(itemId);
  const act = (effect: Act["effect"], isHarmless = false): Act => ({ effect, isHarmless, isBeyond: false });
  if (item.type === "commandExecution") {
    const { command, cwd } = item;
    return { question: { kind: "command", callId, itemId, command, cwd }, act: act("exec", isKnownReadOnly(command)) };
  }
  if (item.type === "fileChange") {
    const paths = item.changes.map(({ path }) => path);
    return { question: { kind: "fileChange", callId, itemId, paths }, act: act("write") };
  }
  const asked = tool === "AskUserQuestion" ? Questions.safeParse(input).data : undefined;
  if (asked !== undefined) {
    const questions = asked.questions.map((one, index) => ({ id: `q${index + 1}`, ...one }));
    return { question: { kind: "userInput", callId, itemId, questions }, act: act("other") };
  }
  const effect = tool.startsWith("Web") ? "net" : "other";
  return { question: { kind: "tool", callId, itemId, tool, arguments: input }, act: act(effect) };
}
