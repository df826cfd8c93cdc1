/**
 * Tools that clients carry out. They are declared in the thread, for every turn and fork of it; a call is a started
 * item, and the client's answer is an event, from wherever the client is connected.
 */
import {
  isHeddleError,
  type By,
  type ClientTool,
  type Failure,
  type InputPart,
  type StoredEvent,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

export function clientToolsOf(history: readonly StoredEvent[]): readonly ClientTool[] {
  const declared = history.findLast(({ body }) => body.type === "thread.tools-declared")?.body;
  return declared?.type === "thread.tools-declared" ? declared.tools : [];
}

export interface ClientCallAnswer extends By {
  readonly threadId: string;
  readonly turnId: string;
  readonly itemId: string;
  readonly content: readonly InputPart[];
  readonly failure?: Failure;
}

export async function answerClientCall(journal: Journal, given: ClientCallAnswer): Promise<void> {
  const { threadId, turnId, itemId, content, failure, by } = given;
  const failed = failure === undefined ? {} : { failure };
  try {
    await journal.append({
      stream: threadId,
      author: by,
      events: [{ type: "tool.answered", v: 1, turnId, itemId, content: [...content], ...failed }],
      key: `tool.answered:${itemId}`,
    });
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
  }
}
