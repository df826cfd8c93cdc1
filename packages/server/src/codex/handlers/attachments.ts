/** `thread/attachment*`: what clients keep beside a thread. It is stored with the thread, and deleted with it. */
import { randomUUID } from "node:crypto";
import { appendAt } from "@heddle/agent";
import { attachmentName } from "@heddle/journal";
import { isHeddleError } from "@heddle/protocol";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { heldBack } from "../../rpc/held.ts";
import { pageOf, type Page, type PageRequest } from "../../rpc/paging.ts";
import { invalidArgument } from "../../host/host-error.ts";
import { requireThreadId } from "../thread-facts.ts";
import { caughtUp } from "./keep.ts";

const KIND = "thread.attachment-changed";
/** That of the original. */
const MAX_PAYLOAD_BYTES = 65_536;
const MAX_NAME_CHARS = 1_024;
const MAX_OF_THREAD = 1_000;
const MAX_OWNERS = 10_000;

interface Identity {
  readonly attachmentType: string;
  readonly identityKey: string;
}

interface Attachment extends Identity {
  readonly id: string;
  readonly payload: unknown;
  /** Seconds. */
  readonly createdAt: number;
}

export const addAttachment: Handler<"thread/attachment/add"> = async (params, { server, connection }) => {
  const { attachmentType, identityKey } = checked(params);
  const { payload } = params;
  if (Buffer.byteLength(JSON.stringify(payload)) > MAX_PAYLOAD_BYTES) {
    throw invalidArgument(`attachment payload must not exceed ${MAX_PAYLOAD_BYTES} bytes`);
  }
  const threadId = await requireStored(server, params.threadId);
  return heldBack(connection, undefined, async () => {
    const attachmentId = randomUUID();
    const { journal } = server.heddle;
    await appendAt(journal, threadId, async (expectedVersion) => {
      const present = await attachmentsOf(server, threadId);
      if (present.some((one) => isSame(one, params))) return;
      if (present.length >= MAX_OF_THREAD) throw invalidArgument(`a thread may have ${MAX_OF_THREAD} attachments`);
      const event = { type: KIND, v: 1, attachmentId, attachmentType, identityKey, payload } as const;
      await journal.append({ stream: threadId, author: connection.by, events: [event], expectedVersion });
    });
    await caughtUp(server);
    // As it is stored: what must be kept secret is not in it.
    const attachment = (await attachmentsOf(server, threadId)).find((one) => isSame(one, params));
    return { outcome: attachment?.id === attachmentId ? "created" : "existing", attachment };
  });
};

export const listAttachments: Handler<"thread/attachment/list"> = async (params, { server }) => {
  const present = await attachmentsOf(server, requireThreadId(params.threadId));
  const { data, nextCursor } = page(present, params, ({ id }) => id);
  return { result: { data, nextCursor } };
};

/** What is not attached needs no removal. */
export const removeAttachment: Handler<"thread/attachment/remove"> = async (params, { server, connection }) => {
  const { attachmentType, identityKey } = checked(params);
  const threadId = requireThreadId(params.threadId);
  return heldBack(connection, undefined, async () => {
    const { journal } = server.heddle;
    await appendAt(journal, threadId, async (expectedVersion) => {
      const known = (await attachmentsOf(server, threadId)).find((one) => isSame(one, params));
      if (known === undefined) return;
      const event = { type: KIND, v: 1, attachmentId: known.id, attachmentType, identityKey } as const;
      await journal.append({ stream: threadId, author: connection.by, events: [event], expectedVersion });
    });
    await caughtUp(server);
    return {};
  });
};

export const listAttachmentOwners: Handler<"thread/attachmentOwner/list"> = async (params, { server }) => {
  const { marks, threads } = server.heddle.journal;
  const streams = await marks.streams({ kind: KIND, name: attachmentName(checked(params)), limit: MAX_OWNERS });
  const owners: { readonly threadId: string; readonly archived: boolean }[] = [];
  for (const threadId of streams) {
    const row = await threads.get(threadId);
    const isOwner = (await attachmentsOf(server, threadId)).some((one) => isSame(one, params));
    if (row === undefined || !isOwner || row.isArchived !== (params.archived ?? row.isArchived)) continue;
    owners.push({ threadId, archived: row.isArchived });
  }
  const { data, nextCursor } = page(owners, params, ({ threadId }) => threadId);
  return { result: { data, nextCursor } };
};

function checked(identity: Identity): Identity {
  const { attachmentType, identityKey } = identity;
  for (const [name, value] of Object.entries({ attachmentType, identityKey })) {
    if (value === "") throw invalidArgument(`${name} must not be empty`);
    if (value.length > MAX_NAME_CHARS) throw invalidArgument(`${name} must not exceed ${MAX_NAME_CHARS} characters`);
  }
  return { attachmentType, identityKey };
}

function isSame(one: Identity, other: Identity): boolean {
  return one.attachmentType === other.attachmentType && one.identityKey === other.identityKey;
}

async function requireStored(server: ServerContext, threadId: string): Promise<string> {
  const row = await server.heddle.journal.threads.get(requireThreadId(threadId));
  if (row === undefined) throw invalidArgument(`thread not found: ${threadId}`);
  return row.id;
}

/** Oldest first. */
async function attachmentsOf({ heddle }: ServerContext, stream: string): Promise<readonly Attachment[]> {
  const present = new Map<string, Attachment>();
  for (const { body, at } of await heddle.journal.marks.events({ stream, kinds: [KIND] })) {
    if (body.type !== KIND) continue;
    const { attachmentId: id, attachmentType, identityKey, payload } = body;
    if (payload === undefined) present.delete(id);
    else
      present.set(id, {
        id,
        attachmentType,
        identityKey,
        payload,
        createdAt: Math.floor(at / 1000),
      });
  }
  return [...present.values()];
}

function page<T>(list: readonly T[], request: PageRequest, idOf: (member: T) => string): Page<T> {
  try {
    return pageOf(list, request, idOf);
  } catch (error) {
    if (isHeddleError(error) && error.code === "cursor.expired") throw invalidArgument("invalid pagination cursor");
    throw error;
  }
}
