/** What Codex asks during a turn, put to Heddle's policy, and the answers in its format. */
import type { ApprovalAnswer } from "@heddle/protocol";
import { isKnownReadOnly } from "@heddle/tools/lines";
import { z } from "zod";
import type { CodexItems } from "./codex-items.ts";
import type { ProgramTurn } from "./conversation.ts";

const Command = z.object({
  itemId: z.string(),
  command: z.string().nullish(),
  cwd: z.string().nullish(),
  reason: z.string().nullish(),
});
const Change = z.object({ itemId: z.string(), reason: z.string().nullish(), grantRoot: z.string().nullish() });
const Input = z.object({
  itemId: z.string(),
  questions: z.array(
    z.object({
      id: z.string(),
      header: z.string().default(""),
      question: z.string(),
      options: z.array(z.object({ label: z.string(), description: z.string().default("") })).nullish(),
    }),
  ),
});
const Elicitation = z.object({
  serverName: z.string(),
  message: z.string().default(""),
  requestedSchema: z.unknown().optional(),
  _meta: z.looseObject({ codex_approval_kind: z.string().optional() }).nullish(),
});

export interface CodexQuestions {
  /** Undefined: there is no such question. */
  answer(method: string, params: unknown): Promise<object> | undefined;
}

export function createCodexQuestions(turn: ProgramTurn, items: CodexItems): CodexQuestions {
  async function command(params: unknown): Promise<object> {
    const { itemId: name, command: line, cwd, reason } = Command.parse(params);
    const call = { command: line ?? "", cwd: cwd ?? turn.workspace };
    const itemId = await items.beginCommand(name, call);
    const question = { kind: "command", callId: name, itemId, ...call, ...(reason ? { reason } : {}) } as const;
    const isHarmless = isKnownReadOnly(call.command);
    return decided(name, await turn.decide(question, { effect: "exec", isHarmless, isBeyond: Boolean(reason) }));
  }

  async function change(params: unknown): Promise<object> {
    const { itemId: name, reason, grantRoot } = Change.parse(params);
    const itemId = await items.beginChange(name);
    const paths = [...items.pathsOf(name)];
    const question = { kind: "fileChange", callId: name, itemId, paths, ...(reason ? { reason } : {}) } as const;
    const act = { effect: "write", isHarmless: false, isBeyond: Boolean(grantRoot) } as const;
    return decided(name, await turn.decide(question, act));
  }

  function decided(name: string, { decision }: ApprovalAnswer): object {
    // What is allowed for the thread Heddle remembers itself.
    if (decision === "accept" || decision === "acceptForThread") return { decision: "accept" };
    items.refused(name);
    return { decision: decision === "cancel" ? "cancel" : "decline" };
  }

  async function input(params: unknown): Promise<object> {
    const { itemId: name, questions } = Input.parse(params);
    const asked = questions.map(({ options, ...rest }) => ({ ...rest, options: options ?? [] }));
    const question = { kind: "userInput", callId: name, itemId: name, questions: asked } as const;
    const { answers = {} } = await turn.decide(question, { effect: "other", isHarmless: false, isBeyond: false });
    return { answers: Object.fromEntries(Object.entries(answers).map(([id, given]) => [id, { answers: given }])) };
  }

  async function elicit(params: unknown): Promise<object> {
    const { serverName: server, message, requestedSchema: schema, _meta: meta } = Elicitation.parse(params);
    const call = { callId: `${server} ${message}`, itemId: server };
    const isCall = meta?.codex_approval_kind === "mcp_tool_call";
    const question = isCall
      ? ({ kind: "tool", ...call, tool: server, arguments: message } as const)
      : ({ kind: "elicitation", ...call, server, message, schema } as const);
    const answer = await turn.decide(question, { effect: "other", isHarmless: false, isBeyond: false });
    const isYes = answer.decision === "accept" || answer.decision === "acceptForThread";
    if (!isYes) return { action: answer.decision === "cancel" ? "cancel" : "decline", content: null };
    return { action: "accept", content: isCall ? {} : (answer.content ?? {}) };
  }

  return {
    answer(method, params) {
      switch (method) {
        case "item/commandExecution/requestApproval":
          return command(params);
        case "item/fileChange/requestApproval":
          return change(params);
        case "item/tool/requestUserInput":
          return input(params);
        case "mcpServer/elicitation/request":
          return elicit(params);
        case "item/permissions/requestApproval":
          // Its sandbox is that of Heddle, and stays as it is.
          return Promise.resolve({ permissions: {}, scope: "turn" });
        default:
          return undefined;
      }
    },
  };
}
