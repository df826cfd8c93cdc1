/** The handshake: what the client can show, and what this agent takes. Only version 1 is spoken. */
import { callerName } from "@heddle/protocol";
import type { AcpHandler } from "./methods.ts";

const VERSION = 1;

export const initialize: AcpHandler<"initialize"> = async ({ clientInfo, clientCapabilities }, { connection }) => {
  const { session, elicitation, _meta: meta } = clientCapabilities ?? {};
  connection.client = {
    name: callerName(clientInfo?.name ?? "") ?? "",
    drawsTerminals: meta?.terminal_output === true,
    showsNotices: isGiven(session?.notices),
    showsCompactions: isGiven(session?.compaction),
    hasForms: isGiven(elicitation?.form),
  };
  return {
    result: {
      // A client of another version decides itself whether it goes on.
      protocolVersion: VERSION,
      agentInfo: { name: "heddle", title: "Heddle", version: connection.server.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {}, title: {} },
      },
      authMethods: [],
    },
  };
};

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
