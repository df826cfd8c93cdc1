/** Questions as requests to the client, and what its user answers. */
import { z } from "zod";
import type { ApprovalAnswer, ApprovalQuestion, Item } from "@heddle/protocol";
import { askedItem } from "../codex-app-server/approvals.ts";
import { textContent, toolCallOf } from "./tool-calls.ts";
import type { AcpClient, AcpRequest, AcpToolCall } from "./shapes.ts";

/** The call that is asked about, as it is shown before it has begun. `callText`: what the model wrote for it. */
export function askedCall(question: ApprovalQuestion, callText: string | undefined): AcpToolCall {
  const item: Item | undefined = askedItem(question, callText);
  const shown = item === undefined ? undefined : toolCallOf(item);
  const call = shown ?? { toolCallId: question.itemId, title: titleOf(question), kind: "other", status: "pending" };
  const why = reasonOf(question);
  return {
    ...call,
    status: "pending",
    ...(why === undefined ? {} : { content: [...(call.content ?? []), textContent(why)] }),
  };
}

function titleOf(question: ApprovalQuestion): string {
  switch (question.kind) {
    case "permissions":
      return "More permissions for this session";
    case "userInput":
      return question.questions[0]?.question ?? "A question";
    case "elicitation":
      return `${question.server}: ${question.message}`;
    case "command":
    case "fileChange":
    case "tool":
      return question.kind;
  }
}

function reasonOf(question: ApprovalQuestion): string | undefined {
  const wider = "wish" in question && question.wish !== undefined ? [wishOf(question.wish)] : [];
  const asked = question.kind === "permissions" ? [rights(question.permissions)] : [];
  const lines = [...(question.reason === undefined ? [] : [question.reason]), ...wider, ...asked];
  return lines.length === 0 ? undefined : lines.join("\n");
}

type Wish = NonNullable<Extract<ApprovalQuestion, { kind: "command" }>["wish"]>;

function wishOf(wish: Wish): string {
  return wish.kind === "outside"
    ? "If you allow it, this call runs without the sandbox."
    : `If you allow it, this call has more rights: ${rights(wish.permissions)}`;
}

function rights({ read, write, network }: Extract<ApprovalQuestion, { kind: "permissions" }>["permissions"]): string {
  return [
    ...(read.length === 0 ? [] : [`read ${read.join(", ")}`]),
    ...(write.length === 0 ? [] : [`write ${write.join(", ")}`]),
    ...(network ? ["use the network"] : []),
  ].join("; ");
}

const OPTIONS = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "allow_always", name: "Always allow in this session", kind: "allow_always" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
] as const;

/** undefined: this client cannot be asked such a question. */
export function permissionRequest(
  sessionId: string,
  { question, call }: { readonly question: ApprovalQuestion; readonly call: AcpToolCall },
  client: AcpClient,
): AcpRequest | undefined {
  const { title, kind, content, locations, rawInput, toolCallId } = call;
  const toolCall = { toolCallId, title, kind, status: "pending", content, locations, rawInput };
  const choose = (options: readonly object[]): AcpRequest => ({
    method: "session/request_permission",
    params: { sessionId, toolCall, options },
  });
  const form = (message: string, requestedSchema: unknown): AcpRequest => ({
    method: "elicitation/create",
    params: { sessionId, toolCallId, mode: "form", message, requestedSchema },
  });
  if (question.kind === "elicitation") {
    return client.hasForms ? form(`${question.server}: ${question.message}`, question.schema) : undefined;
  }
  if (question.kind !== "userInput") return choose(OPTIONS);
  if (client.hasForms) return form(question.reason ?? "The agent asks", schemaOf(question));
  const [only, ...more] = question.questions;
  if (only === undefined || more.length > 0 || only.options.length === 0) return undefined;
  return choose(only.options.map(({ label }) => ({ optionId: label, name: label, kind: "allow_once" })));
}

function schemaOf({ questions }: Extract<ApprovalQuestion, { kind: "userInput" }>): object {
  const properties = questions.map(({ id, header, question, options }) => {
    const hint = options.map(({ label, description }) => `${label}: ${description}`).join("; ");
    const description = hint === "" ? question : `${question} (${hint})`;
    // The user may always give another answer.
    return [id, { type: "string", title: header, description }];
  });
  return { type: "object", properties: Object.fromEntries(properties), required: questions.map(({ id }) => id) };
}

const Outcome = z.object({
  outcome: z.union([
    z.object({ outcome: z.literal("selected"), optionId: z.string() }),
    z.object({ outcome: z.literal("cancelled") }),
  ]),
});
const Form = z.object({ action: z.string(), content: z.record(z.string(), z.unknown()).nullish() });

/** What the client answered. An answer that cannot be read declines. */
export function answerFrom(result: unknown, question: ApprovalQuestion): ApprovalAnswer {
  const form = Form.safeParse(result).data;
  if (form !== undefined) return formAnswer(form, question);
  const outcome = Outcome.safeParse(result).data?.outcome;
  if (outcome === undefined) return { decision: "decline" };
  // The client sends it when its user has cancelled the prompt.
  if (outcome.outcome === "cancelled") return { decision: "cancel" };
  const { optionId } = outcome;
  if (question.kind === "userInput") {
    const [only] = question.questions;
    return { decision: "accept", answers: only === undefined ? {} : { [only.id]: [optionId] } };
  }
  if (optionId === "allow") return { decision: "accept" };
  return { decision: optionId === "allow_always" ? "acceptForThread" : "decline" };
}

function formAnswer({ action, content }: z.infer<typeof Form>, question: ApprovalQuestion): ApprovalAnswer {
  if (action !== "accept") return { decision: "decline" };
  if (question.kind !== "userInput") return { decision: "accept", content: content ?? {} };
  const given = question.questions.flatMap(({ id }) => {
    const value = content?.[id];
    return value === undefined ? [] : [{ id, answer: typeof value === "string" ? value : JSON.stringify(value) }];
  });
  return { decision: "accept", answers: Object.fromEntries(given.map(({ id, answer }) => [id, [answer]])) };
}
