/** Chats: begun, taken up again, listed. */
import type { ThreadRow } from "@heddle/journal";
import { visibleLine } from "@heddle/protocol";
import { CHAT_PROTOCOL, CHAT_RPC, negotiate, type ChatRecord } from "@heddle/dialects/chat";
import { folderFor } from "../../access/folders.ts";
import { refuseFullAccess } from "../../access/full-access.ts";
import { pageOf } from "../../rpc/paging.ts";
import { RpcError } from "../../rpc/peer.ts";
import type { ChatContext, ChatHandler } from "../call.ts";
import { CHAT_ORIGIN, describeChat, requireChat } from "../chats.ts";
import { listed } from "./events.ts";

/** How many chats are looked at; older ones are found by `heddle threads`. */
const MAX_CHATS = 10_000;
const DEFAULT_LIMIT = 50;
const MAX_EVENTS = 1_000;

export const hello: ChatHandler<"hello"> = ({ protocol }, { server, connection }) => {
  const version = negotiate(protocol);
  if (version === undefined) {
    const { min, max } = CHAT_PROTOCOL;
    const message = `this server speaks versions ${min} to ${max}, the client ${protocol.min} to ${protocol.max}`;
    throw new RpcError(CHAT_RPC.invalidRequest, message, { code: "version_mismatch", min, max });
  }
  const { name, role } = connection.principal;
  const services = ["chat", "events"].map((service) => ({ service, version: `${version}` }));
  const identity = { name, role };
  return Promise.resolve({
    result: { type: "hello", protocol_version: version, server_id: server.serverId, identity, services },
  });
};

export const create: ChatHandler<"chat.create"> = async (
  { settings, cwd, title, client_id, client_chat_id },
  { server, connection },
) => {
  refuseFullAccess(connection.principal, settings?.sandbox);
  const workspace = await folderFor({ principal: connection.principal, wanted: cwd, cwd: server.cwd });
  const name = visibleLine(title ?? "").trim();
  const named = name === "" ? {} : { title: name };
  const origin = `${CHAT_ORIGIN}${client_id ?? ""}`;
  const request = { workspace, settings, ...named };
  const beginning = { settings, clientId: client_chat_id ?? undefined, request };
  const id = await server.heddle.as(connection.by).createThread({ workspace, origin, ...named }, beginning);
  return { result: { chat_id: id, thread_id: id } };
};

export const resume: ChatHandler<"chat.resume"> = async ({ after_seq, ...name }, { server }) => {
  const { id } = await requireChat(server, name);
  const { events, log } = await server.hub.past(id, after_seq);
  const chat = { chat_id: id, thread_id: id, last_seq: log.lastSeq, active_turn_id: log.activeTurnId ?? null };
  if (after_seq === undefined) return { result: chat };
  const page = { events: events.slice(0, MAX_EVENTS).map(listed), has_more: events.length > MAX_EVENTS };
  return { result: { ...chat, ...page } };
};

export const list: ChatHandler<"chat.list"> = async (params, { server }) => {
  const { data, nextCursor } = await listChats(server, params);
  return { result: { chats: data, ...(nextCursor === null ? {} : { next_cursor: nextCursor }) } };
};

interface ListRequest {
  readonly status?: ChatRecord["status"] | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Newest activity first; those that were put away only when they are asked for. */
export async function listChats(server: ChatContext, { status, limit = DEFAULT_LIMIT, cursor }: ListRequest) {
  const rows = await server.heddle.journal.threads.list({ limit: MAX_CHATS });
  const wanted = rows.filter(
    (row) => !row.isEphemeral && row.isArchived === (status === "archived") && isIn(row, status),
  );
  const { data, nextCursor } = pageOf(wanted, { limit, cursor }, ({ id }) => id);
  return { data: await Promise.all(data.map((row) => describeChat(server, row))), nextCursor };
}

function isIn(row: ThreadRow, status: ChatRecord["status"] | undefined): boolean {
  if (status === "exited") return false;
  if (status === undefined || status === "archived") return true;
  return (row.lastTurnStatus === "open") === (status === "active");
}
