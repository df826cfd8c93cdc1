/**
 * Sessions of outside agents: a client enters an envelope, calls its tools and leaves. Each is a turn of a thread, so that it
 * is followed, interrupted, approved and verified like any other; the client is its agent. What each method takes and answers
 * is in `@heddle/protocol/sessions`.
 */
import type { OutsideActs, OutsideResult, Surface } from "@heddle/agent";
import { appServerOrigin } from "@heddle/dialects/codex-app-server";
import { defined, HeddleError, type TurnSettings } from "@heddle/protocol";
import { SESSION_METHODS, type SessionAnswers, type SessionMethod } from "@heddle/protocol/sessions";
import { envelopeHash as hashOf } from "@heddle/tools";
import type { z } from "zod";
import { folderFor } from "../../access/folders.ts";
import { isOwner, refuseFullAccess } from "../../access/full-access.ts";
import type { Call } from "../../rpc/call.ts";
import { nextSettings } from "../settings.ts";
import { NO_ROLLOUT, requireRow } from "../thread-facts.ts";
import { ownMethod, type OwnMethod } from "./own-method.ts";

type Params<M extends SessionMethod> = z.output<(typeof SESSION_METHODS)[M]["params"]>;
type Answering<M extends SessionMethod> = (params: Params<M>, call: Call) => Promise<SessionAnswers[M]>;

const HANDLERS: { readonly [M in SessionMethod]: OwnMethod } = {
  "envelope/enter": session("envelope/enter", enter),
  "envelope/attach": session("envelope/attach", attach),
  "envelope/sessions": session("envelope/sessions", listSessions),
  "tool/call": session("tool/call", callTool),
  "tool/cancel": session("tool/cancel", cancelCall),
  "envelope/hop": session("envelope/hop", hop),
  "envelope/leave": session("envelope/leave", leave),
};
export const SESSION_HANDLERS = Object.entries(HANDLERS);

function session<M extends SessionMethod>(name: M, answer: Answering<M>): OwnMethod {
  return ownMethod(SESSION_METHODS[name].params, async (params, call) => {
    call.connection.answerMalformed();
    // The schema of the same method has just made it.
    return { result: await answer(params as Params<M>, call) };
  });
}

async function enter(params: Params<"envelope/enter">, call: Call): Promise<SessionAnswers["envelope/enter"]> {
  const { server, connection } = call;
  const { clientId, agentName, onDisconnect = "stop", idleSec } = params;
  const { by, principal } = connection;
  using _reserved = server.sessions.reserve({ by, agentName, clientId });
  const { thread, workspace, settings } = await beginning(params, call);
  const entering = {
    thread,
    workspace,
    settings,
    onDisconnect,
    ...defined({ clientId, agentName, idleMs: idleSec === undefined ? undefined : idleSec * 1000 }),
    ...(isOwner(principal) ? {} : { staysInSandbox: true }),
  };
  const handle = await server.turns.begin(async () => (await acts(call)).enter(entering));
  const { threadId, turnId, idleMs } = handle;
  await server.sessions.entered(handle, { by, agentName, clientId, onDisconnect, idleMs }, connection);
  const cursor = handle.admittedVersion;
  return { threadId, turnId, ...surfaceOf(handle), cursor, idleSec: idleMs / 1000 };
}

interface Beginning {
  readonly thread: string | { readonly workspace: string; readonly origin: string };
  readonly workspace: string;
  readonly settings: TurnSettings;
}

/** Folder and sandbox are those of any turn of this principal. */
async function beginning(params: Params<"envelope/enter">, call: Call): Promise<Beginning> {
  const { server, connection } = call;
  const { threadId, cwd: wanted, clientId, sandbox: sandboxMode, envelope, ceiling, approvalPolicy } = params;
  const { principal, by } = connection;
  const row = threadId === undefined ? undefined : await requireRow(server, threadId, NO_ROLLOUT);
  const isKept = row !== undefined && wanted === undefined;
  // Also of a thread that somebody else has begun elsewhere: its client runs commands there itself.
  const workspace =
    isKept && isOwner(principal)
      ? row.workspace
      : await folderFor({ principal, wanted: wanted ?? row?.workspace, cwd: server.cwd });
  const patch = defined({ sandboxMode, envelope, ceiling, approvalPolicy });
  const ofThread = (id: string) => nextSettings(server, { threadId: id, workspace }, { patch, clientId });
  const settings =
    row === undefined ? await server.settings.resolve({ workspace, patch, mayLackKey: true }) : await ofThread(row.id);
  refuseFullAccess(principal, settings.sandboxMode);
  if (row !== undefined) return { thread: row.id, workspace, settings };
  const thread = { workspace, origin: appServerOrigin(connection.client?.name ?? "") };
  if (clientId === undefined) return { thread, workspace, settings };
  // A turn is known by its client's id in its own thread: so the thread is made first, once.
  const made = { clientId: `${by} ${clientId}`, request: { ...patch, workspace, method: "envelope/enter" } };
  const id = await server.heddle.as(by).createThread(thread, made);
  return { thread: id, workspace, settings: await ofThread(id) };
}

/** Whoever comes back takes the place of the connection before, and reads the results that it missed. */
async function attach(
  { turnId, after }: Params<"envelope/attach">,
  call: Call,
): Promise<SessionAnswers["envelope/attach"]> {
  const { server, connection } = call;
  const outside = await acts(call);
  const open = await outside.look(turnId);
  const isAttached = open !== undefined && server.sessions.attach(turnId, connection);
  const found = await outside.results(turnId, after ?? Number.MAX_SAFE_INTEGER);
  const { threadId } = (await server.heddle.journal.threads.turn(turnId)) ?? { threadId: "" };
  const { hasMore } = found;
  const cursor = after === undefined ? await server.heddle.journal.version(threadId) : found.cursor;
  const results = found.results.map(({ output, ...result }) => ({ ...result, output: [...output] }));
  const told = { threadId, turnId, results, cursor, hasMore };
  const end = await outside.endOf(turnId);
  if (end !== undefined || !isAttached) return { state: "ended", ...told, end: end ?? { status: "interrupted" } };
  return { state: "open", ...told, ...surfaceOf(open), calls: [...open.calls] };
}

async function listSessions(
  _params: Params<"envelope/sessions">,
  { server, connection }: Call,
): Promise<SessionAnswers["envelope/sessions"]> {
  const listed = server.sessions.list(connection).map(async ({ idleMs, ...entry }) => {
    const open = await (await server.heddle.as(entry.by).outside()).look(entry.turnId);
    if (open === undefined) return [];
    const { envelope, calls } = open;
    return [{ ...defined(entry), idleSec: idleMs / 1000, envelope: envelope.id, calls: [...calls] }];
  });
  return { data: (await Promise.all(listed)).flat() };
}

async function callTool(
  { turnId, callId, tool, arguments: given = {}, envelopeHash }: Params<"tool/call">,
  call: Call,
): Promise<SessionAnswers["tool/call"]> {
  const result = await carryOut(turnId, { callId, tool, arguments: given, envelopeHash }, call);
  return { turnId, callId, ...result };
}

/** The same as a call of the tool `hop`, with what the agent may call then. */
async function hop(
  { turnId, callId, envelopeHash, ...asked }: Params<"envelope/hop">,
  call: Call,
): Promise<SessionAnswers["envelope/hop"]> {
  const result = await carryOut(turnId, { callId, tool: "hop", arguments: asked, envelopeHash }, call);
  const open = await (await acts(call)).look(turnId);
  const surface = open ?? { envelope: await lastEnvelope(call, turnId), tools: [] };
  return { turnId, callId, ...result, ...surfaceOf(surface) };
}

/** Where the thread was when the turn ended. */
async function lastEnvelope({ server }: Call, turnId: string): Promise<Surface["envelope"]> {
  const { threads } = server.heddle.journal;
  const threadId = (await threads.turn(turnId))?.threadId ?? "";
  const row = await threads.envelope(threadId);
  if (row === undefined) throw new HeddleError("turn.not-found", `turn ${turnId} has ended; enter an envelope again`);
  return row.envelope;
}

async function carryOut(turnId: string, asked: Parameters<OutsideActs["call"]>[1], call: Call) {
  const { server, connection, requestId } = call;
  server.sessions.require(turnId, connection);
  using _request = server.sessions.request(turnId, asked.callId, requestId);
  const { output, added, ...result }: OutsideResult = await (await acts(call)).call(turnId, asked);
  return {
    ...result,
    output: [...output],
    ...(added === undefined ? {} : { added: added.map((input) => [...input]) }),
  };
}

async function cancelCall(
  { turnId, callId }: Params<"tool/cancel">,
  call: Call,
): Promise<SessionAnswers["tool/cancel"]> {
  call.server.sessions.require(turnId, call.connection);
  return { turnId, callId, status: await (await acts(call)).cancel(turnId, callId) };
}

/** Again is no mistake: `gone`. */
async function leave(
  { turnId, outcome }: Params<"envelope/leave">,
  call: Call,
): Promise<SessionAnswers["envelope/leave"]> {
  call.server.sessions.require(turnId, call.connection);
  const isLeft = await (await acts(call)).leave(turnId, outcome);
  return { turnId, status: isLeft ? "left" : "gone" };
}

function acts({ server, connection }: Call): Promise<OutsideActs> {
  return server.heddle.as(connection.by).outside();
}

function surfaceOf({
  envelope,
  tools,
}: Surface): Pick<SessionAnswers["envelope/enter"], "envelope" | "envelopeHash" | "tools"> {
  return {
    envelope,
    envelopeHash: hashOf(envelope),
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      ...(parameters === undefined ? {} : { inputSchema: { ...parameters } }),
    })),
  };
}
