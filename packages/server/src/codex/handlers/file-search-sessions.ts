/** `fuzzyFileSearch/session*`: one search for as long as a user types; what was found is sent to the connection that asks. */
import { reasonOf } from "@heddle/protocol";
import type { Call, Handler } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { RPC, RpcError } from "../../rpc/peer.ts";
import { refuse } from "../thread-facts.ts";
import { findFiles, MAX_ROOTS } from "./file-search.ts";

const MAX_SESSIONS = 16;

interface Session {
  readonly roots: readonly string[];
  /** Results of an earlier query are not sent when a later one has come. */
  latest: number;
}

const sessions = new WeakMap<Connection, Map<string, Session>>();

export const startSession: Handler<"fuzzyFileSearch/sessionStart"> = async ({ sessionId, roots }, { connection }) => {
  if (sessionId === "") throw refuse("sessionId must not be empty");
  if (roots.length === 0) throw cannotStart("at least one search directory is required");
  if (roots.length > MAX_ROOTS) throw cannotStart(`at most ${MAX_ROOTS} search directories`);
  const own = sessions.get(connection) ?? new Map<string, Session>();
  sessions.set(connection, own);
  if (!own.has(sessionId) && own.size >= MAX_SESSIONS) {
    throw refuse(`a connection may have ${MAX_SESSIONS} searches; end one with fuzzyFileSearch/sessionStop`);
  }
  own.set(sessionId, { roots, latest: 0 });
  return { result: {} };
};

function cannotStart(why: string): RpcError {
  return new RpcError(RPC.internal, `failed to start fuzzy file search session: ${why}`);
}

export const updateSession: Handler<"fuzzyFileSearch/sessionUpdate"> = async ({ sessionId, query }, call) => {
  const session = sessions.get(call.connection)?.get(sessionId);
  if (session === undefined) throw refuse(`fuzzy file search session not found: ${sessionId}`);
  session.latest += 1;
  const number = session.latest;
  const isWanted = (): boolean =>
    session.latest === number && sessions.get(call.connection)?.get(sessionId) === session;
  return {
    result: {},
    after() {
      search(call, { sessionId, query, roots: session.roots, isWanted }).catch((error: unknown) =>
        call.server.log(`a search for files failed: ${reasonOf(error)}`),
      );
    },
  };
};

interface Search {
  readonly sessionId: string;
  readonly query: string;
  readonly roots: readonly string[];
  readonly isWanted: () => boolean;
}

async function search(call: Call, { sessionId, query, roots, isWanted }: Search): Promise<void> {
  const files = await findFiles({ query, roots, isWanted }, call);
  if (!isWanted()) return;
  call.connection.notify({ method: "fuzzyFileSearch/sessionUpdated", params: { sessionId, query, files } });
  call.connection.notify({ method: "fuzzyFileSearch/sessionCompleted", params: { sessionId } });
}

export const stopSession: Handler<"fuzzyFileSearch/sessionStop"> = async ({ sessionId }, { connection }) => {
  sessions.get(connection)?.delete(sessionId);
  return { result: {} };
};
