/** Names by which agents and users know the agent of a thread: stable until it is given another, and one thread has it. */
import type { Journal, ThreadRow } from "@heddle/journal";
import { AgentName, HeddleError, isHeddleError, PLAIN, reasonOf, visibleLine, type By } from "@heddle/protocol";
import { findThread, requireThread } from "../threads/threads.ts";

/** Two, where two processes gave one name at the same moment. */
const MAX_OF_A_NAME = 2;
const MAX_SHOWN_CHARS = 200;

/** By the name of its agent, or as threads are found. `agent.gone`: it was deleted. */
export async function findAgent(journal: Journal, wanted: string): Promise<ThreadRow> {
  const [named, other] = await journal.threads.agentsNamed(wanted, { limit: MAX_OF_A_NAME });
  if (named !== undefined && other === undefined) return named;
  if (named !== undefined) {
    const candidates = [named.id, other?.id].join(" ");
    const message = `two threads are called ${visibleLine(wanted)}; name one by its id: ${candidates}`;
    throw new HeddleError("thread.ambiguous", message, { details: { candidates } });
  }
  try {
    return await findThread(journal, wanted);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "thread.not-found") throw error;
    const shown = visibleLine(wanted.slice(0, MAX_SHOWN_CHARS));
    if (await journal.threads.isDeleted(wanted)) throw new HeddleError("agent.gone", `thread ${shown} was deleted`);
    throw new HeddleError("agent.not-found", `no agent is called ${shown}; heddle agents shows them`, { cause: error });
  }
}

export interface NameAgent {
  readonly threadId: string;
  /** null: by its id alone. */
  readonly name: string | null;
}

export async function nameAgent(journal: Journal, { threadId, name, by }: NameAgent & By): Promise<void> {
  const row = await requireThread(journal, threadId);
  if (row.agentName === (name ?? undefined)) return;
  if (name !== null) await requireFree(journal, { threadId, name });
  const append = { stream: threadId, author: by } as const;
  await journal.append({ ...append, events: [{ type: "thread.agent-named", v: 1, name }] });
  if (name === null) return;
  // Of two that were given it at the same moment, the older thread keeps it.
  const [first] = await journal.threads.agentsNamed(name, { limit: MAX_OF_A_NAME });
  if (first === undefined || first.id === threadId) return;
  await journal.append({ ...append, events: [{ type: "thread.agent-named", v: 1, name: row.agentName ?? null }] });
  throw taken(name, first.id);
}

/** `agent.name-taken`: another thread has the name. */
export async function requireFree(
  journal: Pick<Journal, "threads">,
  { threadId, name }: { readonly threadId?: string | undefined; readonly name: string },
): Promise<void> {
  const parsed = AgentName.safeParse(name, PLAIN);
  if (!parsed.success) {
    throw new HeddleError("usage.invalid", `the name of an agent ${reasonOf(parsed.error)}`, { cause: parsed.error });
  }
  const found = await journal.threads.agentsNamed(name, { limit: MAX_OF_A_NAME });
  const other = found.find(({ id }) => id !== threadId);
  if (other !== undefined) throw taken(name, other.id);
}

function taken(name: string, threadId: string): HeddleError {
  return new HeddleError("agent.name-taken", `thread ${threadId} is called ${name}`, { details: { threadId } });
}
