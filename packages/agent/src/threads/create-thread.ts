/**
 * A thread begins with one append: what it is, its name, its settings. With a client id the same request again is the
 * same thread, and another request under that id is a conflict.
 */
import { createHash } from "node:crypto";
import {
  canonical,
  HeddleError,
  isHeddleError,
  newThreadId,
  type By,
  type ClientTool,
  type EventBody,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { withGitInfo } from "../context/git-info.ts";
import type { NewThread } from "../heddle.ts";
import { checkedName } from "./threads.ts";
import { checkSettings } from "./changes.ts";

export interface ThreadBeginning {
  /** Of the new thread, where something was made for it before. */
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  readonly tools?: readonly ClientTool[];
  /** Unique among the threads of this client. */
  readonly clientId?: string | undefined;
  /** The whole request as the door read it; compared, never stored. */
  readonly request?: unknown;
}

export async function createThread(
  journal: Journal,
  thread: NewThread,
  { by, ...beginning }: ThreadBeginning & By,
): Promise<string> {
  const { clientId, request } = beginning;
  const threadId = beginning.id ?? newThreadId();
  const append = { stream: threadId, author: by, expectedVersion: 0 } as const;
  if (clientId === undefined) {
    await journal.append({ ...append, events: eventsOf(thread, beginning) });
    return threadId;
  }
  const client = {
    id: clientId,
    requestHash: createHash("sha256")
      .update(canonical(request ?? null))
      .digest("hex"),
  };
  try {
    const events = eventsOf({ ...thread, client }, beginning);
    await journal.append({ ...append, events, key: `thread:${thread.origin}:${clientId}` });
    return threadId;
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
    return sameThread(journal, String(error.details["stream"]), client);
  }
}

function eventsOf(
  thread: NewThread & { readonly client?: { readonly id: string; readonly requestHash: string } },
  { name, settings = {}, tools = [] }: ThreadBeginning,
): readonly EventBody[] {
  checkSettings(settings);
  const events = [...withGitInfo({ type: "thread.created", v: 1, ...thread })];
  if (name !== undefined) events.push({ type: "thread.named", v: 1, name: checkedName(name) });
  if (Object.keys(settings).length > 0) {
    events.push({ type: "thread.settings-changed", v: 1, changes: { ...settings } });
  }
  if (tools.length > 0) events.push({ type: "thread.tools-declared", v: 1, tools: [...tools] });
  return events;
}

/** The thread of this client id, if the request was the same. */
async function sameThread(
  journal: Journal,
  threadId: string,
  client: { readonly id: string; readonly requestHash: string },
): Promise<string> {
  if (await journal.threads.isDeleted(threadId)) {
    throw new HeddleError("store.id-conflict", `the thread of client id ${client.id}, ${threadId}, was deleted`);
  }
  const [first] = await journal.read({ stream: threadId, after: 0, limit: 1 });
  const isSame = first?.body.type === "thread.created" && first.body.client?.requestHash === client.requestHash;
  if (isSame) return threadId;
  throw new HeddleError("store.id-conflict", `client id ${client.id} was used before for another thread, ${threadId}`);
}
