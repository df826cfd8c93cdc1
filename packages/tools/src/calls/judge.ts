/**
 * Whether a call that is understood may run, and behind which walls: its own, or those a hop leads to. What the thread's
 * ceiling forbids is refused before anybody is asked, what nobody may be asked about too, and both are recorded.
 *
 *   paths ─▶ wish made exact ─▶ policy ─▶ ceiling ─▶ guard ─▶ ask ─▶ hop (durable) ─▶ run
 */
import {
  HeddleError,
  toHeddleError,
  type StoredAnswer,
  type ApprovalQuestion,
  type Envelope,
  type Failure,
  type HopScope,
  type HopWish,
} from "@heddle/protocol";
import { absolutePath } from "./call-path.ts";
import { exactWish, foldersBeyond, grantedWish, type Hops, type Walls } from "./hop-wish.ts";
import { checkPath } from "../files/path-rules.ts";
import { approvalKey, decide, type PolicyDecision } from "./policy.ts";
import type { CallPlace, ThreadState, Tool, WishedHop } from "./tool.ts";

export interface JudgeContext extends Walls {
  readonly state: ThreadState;
  readonly signal: AbortSignal;
  /** Keys of acts accepted for the whole thread; the asker adds to it. See `approvalKey`. */
  readonly remembered: ReadonlySet<string>;
  /** The signal takes the question back; it is that of the turn unless another is given. */
  ask(question: ApprovalQuestion, signal?: AbortSignal): Promise<StoredAnswer>;
  /** Somebody else's say, once policy has nothing against the call and before anybody is asked; a reason refuses it. */
  guard?(tool: string, input: unknown): Promise<string | undefined>;
  /** Who lets a call out of its envelope; absent: nobody. */
  readonly hops?: Hops;
}

/** A call with its tool and its arguments. */
export interface Admitted {
  readonly tool: Tool;
  readonly args: unknown;
  readonly input: unknown;
}

export interface Refusal {
  readonly kind: "denied" | "cancelled";
  readonly failure: Failure;
}

/** The walls a call runs behind. */
export interface Behind {
  readonly walls: Walls;
  /** By which hop it got there. */
  readonly granted?: { readonly wish: HopWish; readonly scope: HopScope };
  /** What was answered, where somebody was asked. */
  readonly answer?: StoredAnswer;
}

export type Verdict = Refusal | ({ readonly kind: "run" } & Behind);

export const CANCELLED: Failure = { code: "tool.cancelled", message: "the call was stopped with the turn" };

export async function judge(admitted: Admitted, place: CallPlace, context: JudgeContext): Promise<Verdict> {
  const { tool, args } = admitted;
  const { envelope } = context;
  const writePaths: string[] = [];
  const beyond: string[] = [];
  let wished: WishedHop | undefined;
  try {
    for (const { path, access } of tool.paths(args, place)) {
      const absolute = absolutePath(path, place.cwd);
      if (access === "read") checkPath(absolute, access, envelope);
      else beyond.push(...foldersBeyond(absolute, envelope, { mayAsk: context.hops !== undefined }));
      if (access === "write") writePaths.push(absolute);
    }
    wished = exactly(beyond.length === 0 ? tool.wish?.(args, context) : writingBeyond(beyond), place, envelope);
  } catch (error) {
    return denied(error);
  }
  const question = asking(tool.question(args, place), wished?.wish);
  const decision = decide(
    {
      tool: tool.name,
      effects: tool.effects,
      isReadOnly: isReadOnly(tool, args),
      isQuestion: tool.isQuestion === true,
      hop: wished,
      needsPerson: tool.approval === "prompt",
      writePaths,
      cwd: place.cwd,
      approvalKey: approvalKey(question),
    },
    envelope,
    context.remembered,
  );
  const refusal = wished === undefined ? undefined : await refuseHop(place, wished.wish, { decision, context });
  if (refusal !== undefined) return refusal;
  if (decision.kind === "deny") return denied(new HeddleError(decision.code, decision.message));
  const objection = await context.guard?.(tool.name, admitted.input);
  if (objection !== undefined) return denied(new HeddleError("policy.denied", objection));
  if (decision.kind === "run") return stepOut(place, wished, { answer: undefined, context });
  return askFirst({ ...question, reason: decision.reason }, place, { wished, context });
}

export function isReadOnly(tool: Tool, args: unknown): boolean {
  return tool.effects.every((effect) => effect === "read") || tool.isReadOnly(args);
}

function writingBeyond(write: readonly string[]): WishedHop {
  const permissions = { read: [], write: [...write], network: false };
  const reason = "it writes outside the folders that may be written";
  return { wish: { kind: "wider", permissions }, reason, scope: "call" };
}

/** undefined: the call wants nothing that it has not. */
function exactly(wished: WishedHop | undefined, place: CallPlace, envelope: Envelope): WishedHop | undefined {
  const wish = wished === undefined ? undefined : exactWish(wished.wish, envelope, place.cwd);
  return wished === undefined || wish === undefined ? undefined : { ...wished, wish };
}

/** The question says what an answer would allow beyond the envelope; an answer to it covers nothing else. */
function asking(question: ApprovalQuestion, wish: HopWish | undefined): ApprovalQuestion {
  if (wish === undefined) return question;
  switch (question.kind) {
    case "command":
    case "fileChange":
    case "tool":
      return { ...question, wish };
    case "permissions":
      return wish.kind === "wider" ? { ...question, permissions: wish.permissions } : question;
    default:
      return question;
  }
}

/** Set when nobody could grant the wish. */
async function refuseHop(
  { callId }: CallPlace,
  wish: HopWish,
  { decision, context: { hops } }: { readonly decision: PolicyDecision; readonly context: JudgeContext },
): Promise<Refusal | undefined> {
  try {
    if (decision.kind === "deny") throw new HeddleError(decision.code, decision.message);
    if (hops === undefined) throw new HeddleError("policy.denied", "this envelope cannot be left");
    hops.check(wish);
    return undefined;
  } catch (error) {
    await hops?.refuse(callId, wish, toHeddleError(error));
    return denied(error);
  }
}

interface Asked {
  readonly wished: WishedHop | undefined;
  readonly context: JudgeContext;
}

async function askFirst(question: ApprovalQuestion, place: CallPlace, { wished, context }: Asked): Promise<Verdict> {
  let answer: StoredAnswer;
  try {
    answer = await context.ask(question);
  } catch (error) {
    // A turn that is let go of while it waits is not to hear of an end to the call.
    if (!context.signal.aborted || toHeddleError(error).code === "turn.parked") throw error;
    return { kind: "cancelled", failure: CANCELLED };
  }
  switch (answer.decision) {
    case "accept":
    case "acceptForThread":
      return stepOut(place, wished, { answer, context });
    case "decline": {
      const why = answer.reason === undefined ? "" : `: ${answer.reason}`;
      return denied(new HeddleError("policy.denied", `the user declined this call${why}`));
    }
    case "cancel": {
      const message = "the user declined this call and stopped the turn";
      return { kind: "cancelled", failure: { code: "turn.interrupted", message } };
    }
  }
}

/** `answer` is absent when an earlier one covers the call, or when it needed none. */
async function stepOut(
  { callId }: CallPlace,
  wished: WishedHop | undefined,
  { answer, context }: { readonly answer: StoredAnswer | undefined; readonly context: JudgeContext },
): Promise<Verdict> {
  const { hops } = context;
  if (wished === undefined || hops === undefined) {
    return { kind: "run", walls: context, ...(answer === undefined ? {} : { answer }) };
  }
  const wish = grantedWish(wished.wish, answer?.granted);
  const lasts = answer === undefined || answer.decision === "acceptForThread" ? "thread" : "turn";
  const scope = wished.scope === "call" ? "call" : lasts;
  try {
    const by = answer?.by ?? "policy:remembered";
    return { kind: "run", walls: await hops.take({ callId, wish, scope, by }), granted: { wish, scope } };
  } catch (error) {
    return context.signal.aborted ? { kind: "cancelled", failure: CANCELLED } : denied(error);
  }
}

function denied(error: unknown): Refusal {
  const { code, message } = toHeddleError(error);
  return { kind: "denied", failure: { code, message } };
}
