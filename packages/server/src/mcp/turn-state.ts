/** The last turn of a thread for MCP clients: how it stands, its answer, and what it waits for. */
import type { Journal } from "@heddle/journal";
import { defined, HeddleError, type Item } from "@heddle/protocol";
import { fitText } from "@heddle/tools";
import { z } from "zod";
import { openQuestions } from "../http/approval-views.ts";
import { eventsAfter } from "../http/views.ts";
import type { SurfaceCall } from "./surface.ts";

export const TurnState = z.object({
  threadId: z.string(),
  turnId: z.string(),
  status: z.enum(["running", "completed", "failed", "interrupted"]),
  answer: z.string().optional().describe("The last message of its agent; cut in the middle where it is long"),
  failure: z.object({ code: z.string(), message: z.string() }).optional(),
  durationMs: z.number().optional(),
  costUsd: z.number().optional(),
  questions: z
    .array(z.object({ approvalId: z.string(), kind: z.string(), question: z.string() }))
    .describe("What a user has to answer before it continues"),
  hint: z.string().optional(),
});
export type TurnState = z.output<typeof TurnState>;

const MAX_ANSWER_BYTES = 64_000;
const MAX_QUESTION_BYTES = 2_000;
/** Clients that reset their time limit at each notification keep waiting. */
const STILL_MS = 10_000;

export interface Following extends Pick<SurfaceCall, "signal" | "progress"> {
  readonly timeoutMs: number;
}

/** Until the turn that runs in the thread has ended, the time is over, or the client no longer waits. */
export async function followTurn(
  journal: Journal,
  threadId: string,
  { timeoutMs, signal, progress }: Following,
): Promise<void> {
  // Read before the turn is looked at: its end cannot fall between the two.
  const after = await journal.version(threadId);
  const turn = await journal.threads.lastTurn(threadId);
  if (turn === undefined || turn.endedVersion !== undefined || timeoutMs === 0) return;
  // At once, so that the client knows that its wait has begun.
  progress("the turn runs");
  const startedAt = performance.now();
  const still = setInterval(() => {
    progress(`the turn still runs, after ${Math.round((performance.now() - startedAt) / 1000)} s of waiting`);
  }, STILL_MS);
  const until = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(timeoutMs))]);
  try {
    for await (const { body } of journal.tail({ stream: threadId, after, signal: until })) {
      if (body.type === "item.completed" || body.type === "item.started") progress(`${body.type} ${lineOf(body.item)}`);
      if (body.type === "approval.requested") progress("it waits for the answer of a user");
      if (body.type === "turn.completed" && body.turnId === turn.id) return;
    }
  } finally {
    clearInterval(still);
  }
}

/** Nothing of what it says: progress is shown as it is. */
function lineOf(item: Item): string {
  return "status" in item ? `${item.type} (${item.status})` : item.type;
}

export async function turnState(journal: Journal, threadId: string): Promise<TurnState> {
  const turn = await journal.threads.lastTurn(threadId);
  if (turn === undefined) {
    throw new HeddleError("turn.not-found", `thread ${threadId} has had no turn; start one with thread_continue`);
  }
  const known = { threadId, turnId: turn.id };
  let answer: string | undefined;
  for await (const { body } of eventsAfter(journal, threadId, turn.admittedVersion - 1, READ)) {
    if (body.type === "item.completed" && body.turnId === turn.id && body.item.type === "agentMessage") {
      if (body.item.isPartial !== true && body.item.text.trim() !== "") answer = body.item.text;
    }
    if (body.type !== "turn.completed" || body.turnId !== turn.id) continue;
    const { status, failure, durationMs, costUsd } = body;
    const failed = failure === undefined ? undefined : { code: failure.code, message: failure.message };
    return {
      ...known,
      status,
      ...defined({ answer: answerOf(answer), failure: failed, durationMs, costUsd }),
      questions: [],
    };
  }
  const open = await openQuestions(journal, threadId);
  const questions = open.map(({ row, question }) => ({
    approvalId: row.id,
    kind: question.kind,
    question: fitText(JSON.stringify(question), MAX_QUESTION_BYTES),
  }));
  const hint =
    questions.length > 0
      ? "it waits for a user, who answers at another door: heddle serve, heddle watch --ui or the inbox; you cannot answer"
      : "it still runs; call thread_wait again";
  return { ...known, status: "running", ...defined({ answer: answerOf(answer) }), questions, hint };
}

const READ = ["item.completed", "turn.completed"] as const;

function answerOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : fitText(text, MAX_ANSWER_BYTES);
}
