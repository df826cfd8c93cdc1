/**
 * Whether a parsed call may run, and in which sandbox: its own, or that of a hop. What the thread's ceiling forbids, or what
 * cannot be asked, is refused before the user is asked, and recorded.
 *
 *   paths ─▶ exact request ─▶ policy ─▶ ceiling ─▶ the tool itself ─▶ guard ─▶ ask ─▶ hop (durable) ─▶ run
 */
import {
  HeddleError,
  toHeddleError,
  type StoredAnswer,
  type ApprovalQuestion,
  type Envelope,
  type Failure,
  type HopScope,
  type HopRequest,
} from "@heddle/protocol";
import { absolutePath } from "./call-path.ts";
import { exactRequest, foldersBeyond, grantedRequest, type Hops, type SandboxContext } from "./hop-request.ts";
import { checkPath } from "../files/path-rules.ts";
import type { EnvelopeMeter } from "./envelope-meter.ts";
import { approvalKey, decide, type PolicyDecision } from "./policy.ts";
import type { CallContext, ThreadState, Tool, RequestedHop } from "./tool.ts";

export interface JudgeContext extends SandboxContext {
  readonly state: ThreadState;
  readonly signal: AbortSignal;
  /** Keys of acts accepted for the whole thread; `ask` adds to it. See `approvalKey`. */
  readonly remembered: ReadonlySet<string>;
  /** The signal withdraws the question; default: that of the turn. */
  ask(question: ApprovalQuestion, signal?: AbortSignal): Promise<StoredAnswer>;
  /** Called after policy and before the user is asked; a reason refuses the call. */
  guard?(tool: string, input: unknown): Promise<string | undefined>;
  /** Absent: no call can leave its envelope. */
  readonly hops?: Hops;
  /** Absent: the envelope has no limits. */
  readonly meter?: EnvelopeMeter;
}

export interface Admitted {
  readonly tool: Tool;
  readonly args: unknown;
  readonly input: unknown;
}

export interface Refusal {
  readonly kind: "denied" | "cancelled";
  readonly failure: Failure;
}

export interface Behind {
  readonly target: SandboxContext;
  /** The hop that led there. */
  readonly granted?: { readonly request: HopRequest; readonly scope: HopScope };
  readonly answer?: StoredAnswer;
}

export type Verdict = Refusal | ({ readonly kind: "run" } & Behind);

export const CANCELLED: Failure = { code: "tool.cancelled", message: "the call was stopped with the turn" };

export async function judge(admitted: Admitted, callContext: CallContext, context: JudgeContext): Promise<Verdict> {
  const { tool, args } = admitted;
  const { envelope } = context;
  const writePaths: string[] = [];
  const beyond: string[] = [];
  let requested: RequestedHop | undefined;
  try {
    context.meter?.check();
    for (const { path, access } of tool.paths(args, callContext)) {
      const absolute = absolutePath(path, callContext.cwd);
      if (access === "read") checkPath(absolute, access, envelope);
      else beyond.push(...foldersBeyond(absolute, envelope, { mayAsk: context.hops !== undefined }));
      if (access === "write") writePaths.push(absolute);
    }
    requested = exactly(
      beyond.length === 0 ? tool.requestedHop?.(args, context) : writingBeyond(beyond),
      callContext,
      envelope,
    );
  } catch (error) {
    return denied(error);
  }
  const question = asking(tool.question(args, callContext), requested?.request);
  const decision = decide(
    {
      tool: tool.name,
      effects: tool.effects,
      isReadOnly: isReadOnly(tool, args),
      isQuestion: tool.isQuestion === true,
      hop: requested,
      needsPerson: tool.approval === "prompt",
      writePaths,
      cwd: callContext.cwd,
      approvalKey: approvalKey(question),
    },
    envelope,
    context.remembered,
  );
  const refusal =
    requested === undefined ? undefined : await refuseHop(callContext, requested.request, { decision, context });
  if (refusal !== undefined) return refusal;
  if (decision.kind === "deny") return denied(new HeddleError(decision.code, decision.message));
  const admission = await tool.admit?.(args, callContext);
  if (admission?.kind === "refused") return { kind: "denied", failure: admission.failure };
  const objection = await context.guard?.(tool.name, admitted.input);
  if (objection !== undefined) return denied(new HeddleError("policy.denied", objection));
  if (admission?.kind === "ask") return askFirst(admission.question, callContext, { requested, context, ...admission });
  if (decision.kind === "run") return takeHop(callContext, requested, { answer: undefined, context });
  return askFirst({ ...question, reason: decision.reason }, callContext, { requested, context });
}

export function isReadOnly(tool: Tool, args: unknown): boolean {
  return tool.effects.every((effect) => effect === "read") || tool.isReadOnly(args);
}

function writingBeyond(write: readonly string[]): RequestedHop {
  const permissions = { read: [], write: [...write], network: false };
  const reason = "it writes outside the folders that may be written";
  return { request: { kind: "wider", permissions }, reason, scope: "call" };
}

/** undefined: the envelope gives everything it requests. */
function exactly(
  requested: RequestedHop | undefined,
  callContext: CallContext,
  envelope: Envelope,
): RequestedHop | undefined {
  const request = requested === undefined ? undefined : exactRequest(requested.request, envelope, callContext.cwd);
  return requested === undefined || request === undefined ? undefined : { ...requested, request };
}

/** The question shows what an answer would allow beyond the envelope; an answer covers nothing else. */
function asking(question: ApprovalQuestion, request: HopRequest | undefined): ApprovalQuestion {
  if (request === undefined) return question;
  switch (question.kind) {
    case "command":
    case "fileChange":
    case "tool":
      return { ...question, wish: request };
    case "permissions":
      return request.kind === "wider" ? { ...question, permissions: request.permissions } : question;
    default:
      return question;
  }
}

/** Set when the request cannot be granted. */
async function refuseHop(
  { callId }: CallContext,
  request: HopRequest,
  { decision, context: { hops } }: { readonly decision: PolicyDecision; readonly context: JudgeContext },
): Promise<Refusal | undefined> {
  try {
    if (decision.kind === "deny") throw new HeddleError(decision.code, decision.message);
    if (hops === undefined) throw new HeddleError("policy.denied", "this envelope cannot be left");
    hops.check(request);
    return undefined;
  } catch (error) {
    await hops?.refuse(callId, request, toHeddleError(error));
    return denied(error);
  }
}

interface Asked {
  readonly requested: RequestedHop | undefined;
  readonly context: JudgeContext;
  readonly declined?: (why: string | undefined) => Promise<Failure>;
}

async function askFirst(
  question: ApprovalQuestion,
  callContext: CallContext,
  { requested, context, declined }: Asked,
): Promise<Verdict> {
  let answer: StoredAnswer;
  try {
    answer = await context.ask(question);
  } catch (error) {
    // A turn that is parked while it waits must not record an end of the call.
    if (!context.signal.aborted || toHeddleError(error).code === "turn.parked") throw error;
    return { kind: "cancelled", failure: CANCELLED };
  }
  switch (answer.decision) {
    case "accept":
    case "acceptForThread":
      return takeHop(callContext, requested, { answer, context });
    case "decline": {
      if (declined !== undefined) return { kind: "denied", failure: await declined(answer.reason) };
      const why = answer.reason === undefined ? "" : `: ${answer.reason}`;
      return denied(new HeddleError("policy.denied", `the user declined this call${why}`));
    }
    case "cancel": {
      await declined?.("the turn was stopped");
      const message = "the user declined this call and stopped the turn";
      return { kind: "cancelled", failure: { code: "turn.interrupted", message } };
    }
  }
}

/** `answer` is absent when an earlier one covers the call, or when none was needed. */
async function takeHop(
  { callId }: CallContext,
  requested: RequestedHop | undefined,
  { answer, context }: { readonly answer: StoredAnswer | undefined; readonly context: JudgeContext },
): Promise<Verdict> {
  const { hops } = context;
  if (requested === undefined || hops === undefined) {
    return { kind: "run", target: context, ...(answer === undefined ? {} : { answer }) };
  }
  const request = grantedRequest(requested.request, answer?.granted);
  const lasts = answer === undefined || answer.decision === "acceptForThread" ? "thread" : "turn";
  const scope = requested.scope === "call" ? "call" : lasts;
  try {
    const by = answer?.by ?? "policy:remembered";
    return { kind: "run", target: await hops.take({ callId, request, scope, by }), granted: { request, scope } };
  } catch (error) {
    return context.signal.aborted ? { kind: "cancelled", failure: CANCELLED } : denied(error);
  }
}

function denied(error: unknown): Refusal {
  const { code, message } = toHeddleError(error);
  return { kind: "denied", failure: { code, message } };
}
