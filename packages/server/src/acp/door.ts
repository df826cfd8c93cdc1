/**
 * The Agent Client Protocol, version 1, over one JSON-RPC peer. A session is a thread; the turns, questions and settings in
 * it are those of every other door. A client that goes away leaves nothing running: its turns end with the server, and what
 * only waits for an answer is left for the next one.
 */
import { ACP_PARAMS, Cancel, CancelRequest, type AcpMethod } from "@heddle/dialects/acp";
import { isHeddleError, PLAIN, reasonOf, rpcCodeOf } from "@heddle/protocol";
import type { OpenDialect } from "../server.ts";
import type { Dialect } from "../rpc/choose-dialect.ts";
import { RPC, RpcError, type Reply } from "../rpc/peer.ts";
import { AcpConnection } from "./connection.ts";
import { ACP_METHODS } from "./methods.ts";

export const acpDialect: OpenDialect = ({ peer, principal, server }): Dialect => {
  const connection = new AcpConnection({ peer, principal, server });
  peer.isStandard = true;
  peer.answersMalformed = true;
  return {
    async request(method, params, requestId) {
      try {
        // Without the fan-out nothing could be followed.
        await server.fanOut();
        return await call(connection, { method, params, requestId });
      } catch (error) {
        throw shown(error);
      }
    },
    notification(method, params) {
      if (method === "session/cancel") {
        const named = Cancel.safeParse(params).data;
        if (named !== undefined) connection.cancel(named.sessionId);
      }
      if (method === "$/cancel_request") {
        const named = CancelRequest.safeParse(params).data;
        if (named !== undefined) connection.cancelRequest(named.requestId);
      }
    },
    drained: () => connection.drained(),
    left: () => peer.close(),
    closed: () => connection[Symbol.dispose](),
  };
};

interface Asked {
  readonly method: string;
  readonly params: unknown;
  readonly requestId: string | number;
}

async function call(connection: AcpConnection, { method, params, requestId }: Asked): Promise<Reply> {
  if (!isAcpMethod(method)) throw new RpcError(RPC.methodNotFound, "Method not found", { method });
  if (connection.client === undefined && method !== "initialize") {
    throw new RpcError(RPC.invalidRequest, "Not initialized: send initialize first");
  }
  const parsed = ACP_PARAMS[method].safeParse(params ?? {}, PLAIN);
  if (!parsed.success) throw new RpcError(RPC.invalidParams, `Invalid params: ${reasonOf(parsed.error)}`, { method });
  return ACP_METHODS[method](parsed.data, { connection, requestId });
}

function isAcpMethod(method: string): method is AcpMethod {
  return Object.hasOwn(ACP_PARAMS, method);
}

/** Codes of the protocol where it has one for the failure; Heddle's own code is in the data, always. */
const OWN: Readonly<Record<string, number>> = {
  "auth.missing": -32_000,
  "auth.rejected": -32_000,
  "runner.logged-out": -32_000,
  "thread.not-found": -32_002,
  "usage.invalid": RPC.invalidParams,
  "prompt.empty": RPC.invalidParams,
};

function shown(error: unknown): unknown {
  if (!isHeddleError(error)) return error;
  return new RpcError(OWN[error.code] ?? rpcCodeOf(error.code), error.message, { code: error.code, ...error.details });
}
