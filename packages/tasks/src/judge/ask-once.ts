/**
 * One question to a model that has no tools and no workspace, answered in a fixed shape. It is asked in a thread of its own,
 * so that its tokens are counted like others.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Heddle } from "@heddle/agent";
import { temporaryFolder } from "@heddle/tools";
import { HeddleError, type By, type TurnSettings, type Usage } from "@heddle/protocol";

export interface Question extends By {
  readonly heddle: Pick<Heddle, "as" | "journal">;
  /** How the thread is called. */
  readonly title: string;
  readonly text: string;
  /** JSON Schema of the answer. */
  readonly shape: Readonly<Record<string, unknown>>;
  readonly settings: Pick<TurnSettings, "provider" | "model" | "effort">;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** What is known of the asking, however it ends. */
export interface Asked {
  threadId?: string;
  usage?: Usage;
  costUsd?: number;
}

/** JSON; the shape was checked when it was given, but a runner that does not keep it gives any. */
export async function askOnce(question: Question, asked: Asked): Promise<unknown> {
  const { heddle, by, title, text, shape, timeoutMs, signal } = question;
  const settings: TurnSettings = {
    ...question.settings,
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
    allowedTools: [],
    outputSchema: shape,
  };
  // Not a workspace: what somebody wrote there would be read as instructions.
  const nowhere = await mkdtemp(join(temporaryFolder(), "heddle-question-"));
  try {
    const turn = await heddle.as(by).startTurn({
      thread: { workspace: nowhere, origin: "task", title },
      input: [{ type: "text", text }],
      settings,
    });
    asked.threadId = turn.threadId;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const stop = (): void => {
      const reason = { code: "turn.timeout", message: "the answer took too long, or is no longer needed" } as const;
      // A turn that has ended meanwhile needs no stopping.
      heddle
        .as(by)
        .interrupt(turn.turnId, reason)
        .catch(() => undefined);
    };
    limit.addEventListener("abort", stop, { once: true });
    if (limit.aborted) stop();
    const { body } = await turn.done.finally(() => limit.removeEventListener("abort", stop));
    asked.usage = body.usage;
    if (body.costUsd !== undefined) asked.costUsd = body.costUsd;
    if (body.status !== "completed") {
      throw new HeddleError("task.unverified", body.failure?.message ?? `the turn was ${body.status}`);
    }
    return await lastAnswer(heddle.journal, turn.threadId, turn.admittedVersion);
  } finally {
    await rm(nowhere, { recursive: true, force: true });
  }
}

async function lastAnswer(journal: Heddle["journal"], threadId: string, after: number): Promise<unknown> {
  const events = await journal.read({ stream: threadId, after, limit: 1_000 });
  const texts = events.flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item.text] : [],
  );
  try {
    return JSON.parse(texts.at(-1) ?? "");
  } catch (cause) {
    throw new HeddleError("schema.violated", "its answer is not JSON", { cause });
  }
}
