/** Sessions as a list, and their end. */
import { realpath } from "node:fs/promises";
import { sessionInfo } from "@heddle/dialects/acp";
import { HeddleError } from "@heddle/protocol";
import { pageFrom, threadPosition } from "../rpc/paging.ts";
import { requireThread } from "./begin.ts";
import type { AcpHandler } from "./methods.ts";

const PAGE = 50;

/** Of every door, newest first: a thread that was begun elsewhere can be continued in an editor. */
export const listSessions: AcpHandler<"session/list"> = async ({ cwd, cursor }, { connection: { server } }) => {
  const from = await threadPosition(cursor, server.heddle.journal);
  const folder = typeof cwd === "string" ? await realpath(cwd).catch(() => cwd) : undefined;
  const rows = await server.heddle.journal.threads.page({
    sortBy: "updatedAt",
    direction: "desc",
    limit: PAGE + 1,
    isArchived: false,
    ...(from === undefined ? {} : { from }),
    ...(folder === undefined ? {} : { workspaces: [folder] }),
  });
  const { data, nextCursor } = pageFrom(rows, PAGE, ({ id }) => id);
  return { result: { sessions: data.map(sessionInfo), ...(nextCursor === null ? {} : { nextCursor }) } };
};

/** What runs in it ends, as the protocol asks; the thread stays. */
export const closeSession: AcpHandler<"session/close"> = async ({ sessionId }, { connection }) => {
  const session = connection.session(sessionId);
  session.cancel();
  await session.idle();
  session[Symbol.dispose]();
  return { result: {} };
};

export const deleteSession: AcpHandler<"session/delete"> = async ({ sessionId }, { connection }) => {
  const { server, by } = connection;
  const row = await requireThread(server, sessionId);
  if (row.lastTurnStatus === "open") {
    throw new HeddleError("turn.active", `session ${row.id} is busy; cancel its prompt first`);
  }
  connection.find(row.id)?.[Symbol.dispose]();
  await server.heddle.as(by).deleteThread({ threadId: row.id });
  return { result: {} };
};

/** As at every other door; also of a session that is not open here. */
export const nameSession: AcpHandler<"session/set_title"> = async ({ sessionId, title }, { connection }) => {
  const { server, by } = connection;
  const { id: threadId } = await requireThread(server, sessionId);
  const name = title.trim();
  if (name === "") throw new HeddleError("usage.invalid", "the title of a session must not be empty");
  await server.heddle.as(by).nameThread({ threadId, name });
  return { result: { title: name } };
};
