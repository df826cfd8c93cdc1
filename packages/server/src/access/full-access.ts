/**
 * Full access to the machine is for the owner only: nobody else starts a turn without a sandbox, sends input to one, or lets
 * a call leave its sandbox.
 */
import type { Heddle } from "@heddle/agent";
import { HeddleError, type ApprovalQuestion, type Decision } from "@heddle/protocol";
import { scopeAllows, type Principal } from "./principals.ts";

const OPEN = "danger-full-access";

/** Of a turn that is to begin, or of all that follow. */
export function refuseFullAccess(principal: Principal | undefined, sandboxMode: string | undefined): void {
  if (sandboxMode !== OPEN || isOwner(principal)) return;
  throw new HeddleError("door.forbidden", `${OPEN} is only for the owner; choose another sandbox mode`);
}

/** Of the turn that runs in a thread. */
export async function refuseInputToFullAccess(
  heddle: Heddle,
  principal: Principal | undefined,
  threadId: string,
): Promise<void> {
  if (isOwner(principal) || (await heddle.lastSettings(threadId))?.sandboxMode !== OPEN) return;
  throw new HeddleError("door.forbidden", `this turn runs with ${OPEN}; only the owner may send it input`);
}

export interface Answering {
  readonly threadId: string;
  readonly approvalId: string;
  readonly decision: Decision;
}

/** Everyone may decline, and allow what stays inside the sandbox. */
export async function refuseLeavingSandbox(
  heddle: Heddle,
  principal: Principal | undefined,
  { threadId, approvalId, decision }: Answering,
): Promise<void> {
  if (isOwner(principal) || decision === "decline" || decision === "cancel") return;
  const question = await questionOf(heddle, threadId, approvalId);
  const isBeyond = question !== undefined && leavesSandbox(question);
  if (!isBeyond && (await heddle.lastSettings(threadId))?.sandboxMode !== OPEN) return;
  throw new HeddleError(
    "door.forbidden",
    "only an owner can let an agent leave its sandbox; decline, or ask the owner",
  );
}

/** The same for who is shown what may be answered. */
export function mayOnlyDecline(question: ApprovalQuestion, sandboxMode: string | undefined): boolean {
  return leavesSandbox(question) || sandboxMode === OPEN;
}

function leavesSandbox(question: ApprovalQuestion): boolean {
  return question.kind === "permissions" || ("wish" in question && question.wish !== undefined);
}

/** Undefined: there is no such question; answering it is refused later. */
async function questionOf(
  { journal }: Heddle,
  threadId: string,
  approvalId: string,
): Promise<ApprovalQuestion | undefined> {
  const look = { stream: threadId, kinds: ["approval.requested"], name: approvalId } as const;
  const body = (await journal.marks.events(look))[0]?.body;
  return body?.type === "approval.requested" ? body.question : undefined;
}

export function isOwner(principal: Principal | undefined): boolean {
  return principal !== undefined && scopeAllows(principal.role, "admin");
}
