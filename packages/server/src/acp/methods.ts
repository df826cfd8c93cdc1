/** The methods of the door, one row each. */
import type { AcpMethod, AcpParams } from "@heddle/dialects/acp";
import type { Reply, RequestId } from "../rpc/peer.ts";
import { forkSession, loadSession, newSession, resumeSession } from "./begin.ts";
import { setMode, setOption } from "./choices.ts";
import type { AcpConnection } from "./connection.ts";
import { initialize } from "./initialize.ts";
import { closeSession, deleteSession, listSessions, nameSession } from "./list.ts";
import { prompt } from "./prompt.ts";
import { configOptions } from "@heddle/dialects/acp";

export interface AcpCall {
  readonly connection: AcpConnection;
  readonly requestId: RequestId;
}

export type AcpHandler<Method extends AcpMethod> = (params: AcpParams<Method>, call: AcpCall) => Promise<Reply>;

const setSessionMode: AcpHandler<"session/set_mode"> = async ({ sessionId, modeId }, { connection }) => {
  await setMode(connection, connection.session(sessionId), modeId);
  return { result: {} };
};

const setSessionModel: AcpHandler<"session/set_model"> = async ({ sessionId, modelId }, { connection }) => {
  await setOption(connection, connection.session(sessionId), { configId: "model", value: modelId });
  return { result: {} };
};

const setConfigOption: AcpHandler<"session/set_config_option"> = async (params, { connection }) => {
  const session = connection.session(params.sessionId);
  await setOption(connection, session, params);
  const choices = await session.choices();
  session.shows(choices);
  return { result: { configOptions: configOptions(choices) } };
};

/** There is nothing to log in to: the owner of the home is who starts the program. */
const authenticate: AcpHandler<"authenticate"> = () => Promise.resolve({ result: {} });

type Handlers = { readonly [Method in AcpMethod]: AcpHandler<Method> };

const HANDLERS: Handlers = {
  initialize,
  authenticate,
  "session/new": newSession,
  "session/load": loadSession,
  "session/resume": resumeSession,
  "session/fork": forkSession,
  "session/list": listSessions,
  "session/close": closeSession,
  "session/delete": deleteSession,
  "session/set_title": nameSession,
  "session/prompt": prompt,
  "session/set_mode": setSessionMode,
  "session/set_model": setSessionModel,
  "session/set_config_option": setConfigOption,
};

/** Params have been parsed by the schema of the same name. */
export const ACP_METHODS = HANDLERS as {
  readonly [Method in AcpMethod]: (params: unknown, call: AcpCall) => Promise<Reply>;
};
