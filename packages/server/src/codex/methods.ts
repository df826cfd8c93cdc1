/**
 * The table of methods: name → params → handler. A method is added by one row here and one function in handlers/. What the
 * original knows and is not in the table is refused in words; the connection lives on.
 */
import {
  CODEX_METHODS,
  CwdPageParams,
  EXPERIMENTAL_FIELDS,
  InitializeParams,
  ModelListParams,
  PageParams,
  SkillsListParams,
  ThreadForkParams,
  ThreadItemsListParams,
  ThreadListParams,
  ThreadNameParams,
  ThreadParams,
  ThreadReadParams,
  ThreadResumeParams,
  ThreadStartParams,
  ThreadTurnsListParams,
  TurnInterruptParams,
  TurnStartParams,
  TurnSteerParams,
  unknownVariant,
} from "@heddle/dialects/codex-app-server";
import type { Call } from "../rpc/call.ts";
import { initialize } from "./handlers/initialize.ts";
import { listModels } from "./handlers/models.ts";
import { listItems, listThreads, listTurns, readThread } from "./handlers/read.ts";
import { archiveThread, deleteThread, nameThread, unarchiveThread } from "./handlers/keep.ts";
import { listProfiles, listSkills } from "./handlers/surroundings.ts";
import { forkThread, listLoaded, resumeThread, startThread, unsubscribe } from "./handlers/threads.ts";
import { compactThread, interruptTurn, startTurn, steerTurn } from "./handlers/turns.ts";
import { HOST_METHODS } from "../host/host-methods.ts";
import { invalid, row, type Method } from "../rpc/method.ts";
import { RPC, RpcError, type Reply } from "../rpc/peer.ts";
import { THREAD_METHODS } from "./thread-methods.ts";

const METHODS: Readonly<Record<string, Method>> = {
  initialize: row(InitializeParams, initialize),
  "thread/start": row(ThreadStartParams, startThread),
  "thread/resume": row(ThreadResumeParams, resumeThread),
  "thread/fork": row(ThreadForkParams, forkThread),
  "thread/list": row(ThreadListParams, listThreads),
  "thread/read": row(ThreadReadParams, readThread),
  "thread/turns/list": row(ThreadTurnsListParams, listTurns),
  "thread/items/list": row(ThreadItemsListParams, listItems),
  "thread/loaded/list": row(PageParams, listLoaded),
  "thread/unsubscribe": row(ThreadParams, unsubscribe),
  "thread/name/set": row(ThreadNameParams, nameThread),
  "thread/archive": row(ThreadParams, archiveThread),
  "thread/unarchive": row(ThreadParams, unarchiveThread),
  "thread/delete": row(ThreadParams, deleteThread),
  "thread/compact/start": row(ThreadParams, compactThread),
  "turn/start": row(TurnStartParams, startTurn),
  "turn/steer": row(TurnSteerParams, steerTurn),
  "turn/interrupt": row(TurnInterruptParams, interruptTurn),
  "model/list": row(ModelListParams, listModels),
  "permissionProfile/list": row(CwdPageParams, listProfiles),
  "skills/list": row(SkillsListParams, listSkills),
  ...THREAD_METHODS,
  ...HOST_METHODS,
};

/** What is answered here, with what it takes; for those who describe the server. */
export const SUPPORTED: ReadonlyMap<string, Method> = new Map(Object.entries(METHODS));

/** In the order of the original: what it cannot read comes first, then who asks, then what they may ask. */
export async function callMethod(name: string, params: unknown, call: Call): Promise<Reply> {
  const known = CODEX_METHODS.get(name);
  if (known === undefined) throw invalid(unknownVariant(name, CODEX_METHODS.keys()));
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  const carryOut = method?.prepare(params);
  const { client } = call.connection;
  if (name !== "initialize") {
    if (client === undefined) throw new RpcError(RPC.invalidRequest, "Not initialized");
    if (!client.isExperimental) refuseExperimental(name, known.isExperimental, params);
  }
  if (carryOut === undefined) {
    throw new RpcError(RPC.methodNotFound, `${name} is not supported by heddle app-server`);
  }
  return carryOut(call);
}

function refuseExperimental(name: string, isExperimental: boolean, params: unknown): void {
  const refuse = (what: string): never => {
    throw new RpcError(RPC.invalidRequest, `${what} requires experimentalApi capability`);
  };
  if (isExperimental) refuse(name);
  if (typeof params !== "object" || params === null) return;
  const given = new Map(Object.entries(params));
  for (const field of EXPERIMENTAL_FIELDS[name] ?? []) {
    const value = given.get(field) ?? undefined;
    if (value !== undefined && value !== false) refuse(`${name}.${field}`);
  }
}
