/** Questions as requests of the server, and what clients answer. */
import { z } from "zod";
import type { ApprovalAnswer, ApprovalQuestion, Decision, Item } from "@heddle/protocol";
import { commandActions, shownCommand } from "./items.ts";
import { patchChanges } from "./patch.ts";
import { codexPermissions, grantFrom } from "./permissions.ts";
import { elicitationRequest, elicitedFrom, userAnswerFrom, userInputRequest } from "./questions.ts";
import type { CodexServerRequest } from "./shapes.ts";

interface AskingTurn {
  readonly threadId: string;
  readonly turnId: string;
  readonly startedAtMs: number;
}

export function approvalRequest(question: ApprovalQuestion, turn: AskingTurn): CodexServerRequest {
  const { threadId, turnId, startedAtMs } = turn;
  const at = { threadId, turnId, itemId: question.itemId, startedAtMs };
  switch (question.kind) {
    case "command":
      return {
        method: "item/commandExecution/requestApproval",
        params: {
          kind: "command",
          ...at,
          environmentId: "local",
          ...(question.reason === undefined ? {} : { reason: question.reason }),
          command: shownCommand(question.command),
          cwd: question.cwd,
          commandActions: commandActions(question.command),
          ...(question.wish?.kind === "wider"
            ? { additionalPermissions: codexPermissions(question.wish.permissions) }
            : {}),
          proposedExecpolicyAmendment: null,
          availableDecisions: ["accept", "acceptForSession", "decline", "cancel"],
        },
      };
    case "fileChange":
      return {
        method: "item/fileChange/requestApproval",
        params: { ...at, reason: question.reason ?? null, grantRoot: null },
      };
    case "tool":
      return toolRequest(question, turn);
    case "userInput":
      return userInputRequest(question, turn);
    case "elicitation":
      return elicitationRequest(question, turn);
    case "permissions":
      return {
        method: "item/permissions/requestApproval",
        params: {
          ...at,
          environmentId: "local",
          cwd: question.cwd,
          reason: question.reason ?? null,
          permissions: codexPermissions(question.permissions),
        },
      };
  }
}

/** What Heddle calls a tool of an MCP server. */
const MCP_TOOL = /^mcp\.([^.]+)\.(.+)$/;

/** The original asks about tools of MCP servers in the form of an elicitation. */
function toolRequest(question: Extract<ApprovalQuestion, { kind: "tool" }>, turn: AskingTurn): CodexServerRequest {
  const [, server = "heddle", tool = question.tool] = MCP_TOOL.exec(question.tool) ?? [];
  return {
    method: "mcpServer/elicitation/request",
    params: {
      threadId: turn.threadId,
      turnId: turn.turnId,
      serverName: server,
      mode: "form",
      message: hopMessage(question) ?? `Allow the ${server} MCP server to run tool "${tool}"?`,
      requestedSchema: { type: "object", properties: {} },
      _meta: {
        codex_approval_kind: "mcp_tool_call",
        persist: ["session"],
        tool_name: tool,
        ...(question.description === undefined ? {} : { tool_description: question.description }),
        tool_params: question.arguments ?? {},
        tool_params_display: shownParams(question.arguments),
        ...(question.reason === undefined ? {} : { reason: question.reason }),
      },
      itemId: question.itemId,
    },
  };
}

const Hop = z.object({ from: z.string(), to: z.string() });

/** undefined: the call is no hop. */
function hopMessage({ tool, arguments: args }: Extract<ApprovalQuestion, { kind: "tool" }>): string | undefined {
  const hop = tool === "hop" ? Hop.safeParse(args) : undefined;
  if (hop?.success !== true) return undefined;
  return `Allow this thread to leave the envelope "${hop.data.from}" and enter "${hop.data.to}"?`;
}

function shownParams(args: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof args !== "object" || args === null) return [];
  return Object.entries(args).map(([name, value]) => ({ name, value, display_name: name }));
}

const Persist = z.object({ _meta: z.object({ persist: z.unknown() }).nullish() });
const Answer = z.union([
  z.object({ decision: z.enum(["accept", "acceptForSession", "decline", "cancel"]) }),
  z.object({
    decision: z.union([
      z.object({ acceptWithExecpolicyAmendment: z.object({ execpolicy_amendment: z.array(z.string()) }) }),
      z.object({
        applyNetworkPolicyAmendment: z.object({
          network_policy_amendment: z.object({ host: z.string(), action: z.enum(["allow", "deny"]) }),
        }),
      }),
    ]),
  }),
  z.object({ action: z.enum(["accept", "decline", "cancel"]) }),
]);

/** What a client answers to a question of any kind. */
export function answerFrom(result: unknown, question: ApprovalQuestion): ApprovalAnswer {
  if (question.kind === "userInput") return userAnswerFrom(result, question);
  if (question.kind === "elicitation") return elicitedFrom(result);
  if (question.kind === "permissions") return grantFrom(result);
  return { decision: decisionFrom(result) };
}

/** An unreadable answer declines. A rule for similar commands counts for this command, in this thread. */
function decisionFrom(result: unknown): Decision {
  const parsed = Answer.safeParse(result);
  if (!parsed.success) return "decline";
  if ("action" in parsed.data) {
    const { action } = parsed.data;
    const meta = Persist.safeParse(result);
    const isKept = meta.success && typeof meta.data._meta?.persist === "string";
    // Cancel declines the call; the turn continues.
    if (action !== "accept") return "decline";
    return isKept ? "acceptForThread" : "accept";
  }
  const { decision } = parsed.data;
  if (typeof decision === "object") {
    if ("acceptWithExecpolicyAmendment" in decision) return "acceptForThread";
    const { action } = decision.applyNetworkPolicyAmendment.network_policy_amendment;
    return action === "allow" ? "accept" : "decline";
  }
  return decision === "acceptForSession" ? "acceptForThread" : decision;
}

/**
 * Clients show what they ask about as an item that has begun. Heddle stores the item when it begins, which is after the
 * answer; so the question tells what it will be. undefined: nothing is shown, or it has begun already.
 */
export function askedItem(question: ApprovalQuestion, callText: string | undefined): Item | undefined {
  const { itemId: id, callId } = question;
  switch (question.kind) {
    case "command": {
      const { command, cwd } = question;
      return { type: "commandExecution", id, callId, command, cwd, status: "inProgress", output: "" };
    }
    case "fileChange":
      return {
        type: "fileChange",
        id,
        callId,
        status: "inProgress",
        changes: patchChanges(question.paths, callText ?? ""),
      };
    case "tool": {
      const [, server, tool] = MCP_TOOL.exec(question.tool) ?? [];
      const call = { id, callId, arguments: question.arguments, status: "inProgress" } as const;
      return server === undefined || tool === undefined
        ? { type: "toolCall", tool: question.tool, ...call }
        : { type: "mcpToolCall", server, tool, ...call };
    }
    case "userInput":
    case "elicitation":
    case "permissions":
      return undefined;
  }
}
