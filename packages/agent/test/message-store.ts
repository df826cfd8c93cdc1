/** A store with threads, for messages without turns. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import {
  newThreadId,
  newTurnId,
  type Author,
  type Envelope,
  type EventBody,
  type ThreadParent,
} from "@heddle/protocol";
import type { MessageRules } from "../src/messages/rules.ts";
import { sendMessage, type SenderTurn, type Sending, type Sent } from "../src/messages/send.ts";

export const KEEPS: MessageRules = { hasTools: true, wakes: false, envelope: "observe" };

export interface MessageStore extends AsyncDisposable {
  readonly home: string;
  readonly journal: Journal;
  thread(parent?: string): Promise<string>;
  send(sending: Sending, by?: Author): Promise<Sent>;
  bodies(threadId: string): Promise<readonly EventBody[]>;
}

export async function openMessageStore(): Promise<MessageStore> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-messages-"));
  const home = join(folder, "home");
  const journal = await openJournal({ home });
  return {
    home,
    journal,
    thread: (parent) => addThread(journal, parent),
    send: (sending, by = sending.from === undefined ? "user:owner" : "agent:embedded") =>
      sendMessage(journal, { ...sending, by }, KEEPS),
    bodies: async (threadId) => (await journal.read({ stream: threadId, after: 0 })).map(({ body }) => body),
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const NOTHING: Envelope = {
  id: "explore",
  tools: [],
  effects: ["read"],
  writeRoots: [],
  masked: [],
  network: "none",
  sandbox: "required",
  approval: "never",
};

async function addThread(journal: Journal, parentId: string | undefined): Promise<string> {
  const threadId = newThreadId();
  const parent: ThreadParent | undefined =
    parentId === undefined ? undefined : { threadId: parentId, turnId: "t", itemId: "i", depth: 1, envelope: NOTHING };
  const created = { type: "thread.created", v: 1, workspace: "/w", origin: "test", ...(parent && { parent }) } as const;
  await journal.append({ stream: threadId, author: "user:owner", events: [created] });
  return threadId;
}

export function turnOf(threadId: string, hops?: number): SenderTurn {
  return { threadId, turnId: newTurnId(), hops, envelope: NOTHING };
}
