/**
 * Approvals through the journal: question and answer are stored events, and the turn waits for the answer there. So any
 * door can answer, the first answer wins by its key, and who allowed what is on record.
 */
import {
  HeddleError,
  isHeddleError,
  newApprovalId,
  type ApprovalQuestion,
  type Author,
  type ApprovalAnswer,
  type By,
  type StoredAnswer,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { approvalKey } from "@heddle/tools";
import type { TurnInbox } from "../turns/inbox.ts";
import { isParking, type CarriedOver, type StoredQuestion } from "./carried.ts";
import { checkAnswer } from "./questions.ts";

type Appending = Pick<Journal, "append">;

export interface AskOptions {
  readonly threadId: string;
  readonly turnId: string;
  readonly signal: AbortSignal;
  /** In `exec`: policy answers at once, through the same two events. */
  readonly isUnattended: boolean;
  /** Asked before by a process that has ended; it is not asked again. */
  readonly stored: StoredQuestion | undefined;
  /** Policy declines after this long; absent: it waits. */
  readonly timeoutMs: number | undefined;
}

export async function ask(
  journal: Appending,
  inbox: TurnInbox,
  question: ApprovalQuestion,
  options: AskOptions,
): Promise<StoredAnswer> {
  const { threadId, turnId, signal } = options;
  const { approvalId, answerBy } = options.stored ?? (await put(journal, question, options));
  using _deadline = declineAt(journal, { threadId, turnId, approvalId, answerBy });
  if (options.isUnattended) {
    await resolve(
      journal,
      { threadId, turnId, approvalId, decision: "decline", reason: UNATTENDED },
      "policy:unattended",
    );
  }
  try {
    const resolution = await inbox.resolution(approvalId, signal);
    failpoint("approval.after-resolve");
    return resolution;
  } catch (error) {
    // A question whose turn is only parked stays open for the next process.
    if (!signal.aborted || isParking(signal.reason)) throw error;
    await takeBack(journal, { threadId, turnId, approvalId, reason: "the turn was interrupted" });
    throw error;
  }
}

async function put(
  journal: Appending,
  question: ApprovalQuestion,
  options: AskOptions,
): Promise<Pick<StoredQuestion, "approvalId" | "answerBy">> {
  const { threadId, turnId, isUnattended, timeoutMs } = options;
  const approvalId = newApprovalId();
  const due = timeoutMs === undefined || isUnattended ? {} : { answerBy: Date.now() + timeoutMs };
  const asked = { turnId, approvalId, question, ...(isUnattended ? { isUnattended } : {}), ...due };
  await journal.append({
    stream: threadId,
    author: "system",
    events: [{ type: "approval.requested", v: 1, ...asked }],
  });
  failpoint("approval.after-request");
  return { approvalId, ...due };
}

export interface DueQuestion {
  readonly threadId: string;
  readonly turnId: string;
  readonly approvalId: string;
  readonly answerBy: number | undefined;
}

/** Declines a question at its deadline, unless it is answered before; calls `then` once that is durable. */
export function declineAt(journal: Appending, due: DueQuestion, then?: () => Promise<void>): Disposable {
  const { answerBy, ...question } = due;
  if (answerBy === undefined) return { [Symbol.dispose]: () => undefined };
  const given: Answer = { ...question, decision: "decline", reason: "no answer came in time" };
  const timer = setTimeout(
    () => {
      // The turn itself reports a store that cannot be written.
      resolve(journal, given, "policy:timeout")
        .then(then, () => undefined)
        .catch(() => undefined);
    },
    Math.max(0, answerBy - Date.now()),
  );
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Cancels a question that is not needed any more, unless it is answered. */
export async function takeBack(journal: Appending, question: Omit<Answer, "decision">): Promise<void> {
  await resolve(journal, { ...question, decision: "cancel" }, "system");
}

const UNATTENDED = "no approval is possible: this run is unattended";

export interface Answer extends ApprovalAnswer {
  readonly threadId: string;
  readonly turnId: string;
  readonly approvalId: string;
}

/** Answers a question of any process; the first answer wins. Returns the id of the turn that asked. */
export async function answer(journal: Journal, { by, ...given }: Omit<Answer, "turnId"> & By): Promise<string> {
  const look = { stream: given.threadId, kinds: ["approval.requested"], name: given.approvalId } as const;
  const [asked] = await journal.marks.events(look);
  if (asked?.body.type !== "approval.requested") {
    throw new HeddleError("approval.not-found", `no question ${given.approvalId} in thread ${given.threadId}`);
  }
  checkAnswer(asked.body.question, given);
  const isFirst = await resolve(journal, { ...given, turnId: asked.body.turnId }, by);
  if (!isFirst) {
    const before = await firstAnswer(journal, given, asked.version);
    throw new HeddleError("approval.already-resolved", `question ${given.approvalId} is already answered${before}`);
  }
  return asked.body.turnId;
}

/** Next to nothing happens in a thread between a question and its answer. */
const MAX_BETWEEN = 200;

/** Who was faster, and what they said. */
async function firstAnswer(
  journal: Pick<Journal, "read">,
  { threadId, approvalId }: Pick<Answer, "threadId" | "approvalId">,
  askedAt: number,
): Promise<string> {
  for (const { author, body } of await journal.read({ stream: threadId, after: askedAt, limit: MAX_BETWEEN }))
    if (body.type === "approval.resolved" && body.approvalId === approvalId) return `: ${body.decision} by ${author}`;
  return "";
}

async function resolve(journal: Appending, given: Answer, author: Author): Promise<boolean> {
  const { threadId, turnId, approvalId, decision, reason, answers, content, granted } = given;
  const more = {
    ...(reason === undefined ? {} : { reason }),
    ...(answers === undefined ? {} : { answers }),
    ...(content === undefined ? {} : { content }),
    ...(granted === undefined ? {} : { granted }),
  };
  try {
    const appended = await journal.append({
      stream: threadId,
      author,
      events: [{ type: "approval.resolved", v: 1, turnId, approvalId, decision, ...more }],
      key: `approval.resolved:${approvalId}`,
    });
    return !appended.isRepeat;
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.id-conflict") return false;
    throw error;
  }
}

/**
 * Acts that the user has accepted for the whole thread, from the journal. An answer that a call of this turn still
 * waits for belongs to that call.
 */
export function rememberedApprovals(history: readonly StoredEvent[], carried: CarriedOver | undefined): Set<string> {
  const asked = new Map<string, ApprovalQuestion>();
  const accepted = new Set<string>();
  const met = new Set([...(carried?.questions.values() ?? [])].map(({ approvalId }) => approvalId));
  for (const { body } of history) {
    if (body.type === "approval.requested" && !met.has(body.approvalId)) asked.set(body.approvalId, body.question);
    if (body.type === "approval.resolved" && body.decision === "acceptForThread") {
      const question = asked.get(body.approvalId);
      if (question !== undefined && isAct(question)) accepted.add(approvalKey(question));
    }
  }
  return accepted;
}

/** The other kinds are answered with content; what they grant for later calls is in force by a hop. */
export function isAct({ kind }: ApprovalQuestion): boolean {
  return kind === "command" || kind === "fileChange" || kind === "tool";
}
