/** Messages, and what stops or answers for the turns they become. */
import { awaitTerminal, findSent, type Acts, type StartTurn, type Steering } from "@heddle/agent";
import type { ThreadRow } from "@heddle/journal";
import { HeddleError, inputItemId, isHeddleError, type By, type InputPart } from "@heddle/protocol";
import { decisionOf, type ChatParams, type ChatResultOf, type ChatSettings } from "@heddle/dialects/chat";
import { readInput } from "../../codex/input.ts";
import { refuseLeavingSandbox, refuseFullAccess, refuseInputToFullAccess } from "../../access/full-access.ts";
import type { ChatCall, ChatContext, ChatHandler } from "../call.ts";
import { openTurnOf, requireChat } from "../chats.ts";
import { turnSettings } from "../turn-settings.ts";

/** A turn that was told to stop ends within six seconds. */
const END_MS = 10_000;

export const send: ChatHandler<"chat.message.send"> = async (params, { server, connection }) => {
  const row = await requireChat(server, params);
  if (row.isArchived) throw new HeddleError("usage.invalid", `chat_id: ${row.id} is archived; unarchive it first`);
  const { message } = params;
  const parts = typeof message === "string" ? [{ type: "text" as const, text: message }] : message;
  const input = await readInput(parts, row.workspace);
  const held = connection.hold(row.id);
  try {
    const result = await server.sends.run(row.id, () => take({ server, connection }, row, { ...params, input }));
    return { result, after: () => held[Symbol.dispose]() };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
};

type Sending = ChatParams<"chat.message.send"> & { readonly input: readonly InputPart[] };
type Taken = ChatResultOf<"chat.message.send">;

async function take({ server, connection }: ChatCall, { id }: ThreadRow, sending: Sending): Promise<Taken> {
  const { input, client_message_id } = sending;
  const { by } = connection;
  const clientId = client_message_id ?? undefined;
  const sent = clientId === undefined ? undefined : await findSent(server.heddle.journal, id, { clientId, input });
  if (sent !== undefined) {
    const isTurn = sent.as === "turn";
    const item_id = isTurn ? inputItemId(sent.turnId) : null;
    return {
      chat_id: id,
      turn_id: sent.turnId,
      item_id,
      duplicate: true,
      ...(isTurn ? {} : { queued: true as const }),
    };
  }
  // Read again: it may have got a turn while this one waited.
  const row = await requireChat(server, { chat_id: id });
  const running = await openTurnOf(server, row);
  const isSpoken = running !== undefined && sending.inject === true;
  if (isSpoken) await refuseInputToFullAccess(server.heddle, connection.principal, id);
  if (isSpoken && (await injected(server, running, { clientId, input, by }))) {
    return { chat_id: id, turn_id: running, item_id: null, queued: true };
  }
  const { settings, once } = await turnSettings(server, row, overrides(sending));
  refuseFullAccess(connection.principal, settings.sandboxMode);
  const isFree = running === undefined && (await server.heddle.journal.threads.queued(id)).length === 0;
  const begun = isFree ? await begin(server, id, { input, settings, once, clientId, by }) : undefined;
  if (begun !== undefined) return { chat_id: id, turn_id: begun, item_id: inputItemId(begun) };
  const turn_id = await server.queue.add({ threadId: id, input, settings, once, clientId, by });
  return { chat_id: id, turn_id, item_id: null, queued: true };
}

function overrides({ model, effort, approval_policy, collaboration_mode }: Sending): ChatSettings {
  return {
    model: model ?? undefined,
    effort: effort ?? undefined,
    approval_policy: approval_policy ?? undefined,
    collaboration_mode: collaboration_mode ?? undefined,
  };
}

/** undefined: another turn came first. */
async function begin(
  { heddle, turns }: ChatContext,
  thread: string,
  {
    input,
    settings,
    once,
    clientId,
    by,
  }: Pick<StartTurn, "input" | "settings" | "once"> & By & { readonly clientId: string | undefined },
): Promise<string | undefined> {
  try {
    const named = clientId === undefined ? {} : { clientId };
    const start = { thread, input, settings, once, ...named };
    return (await turns.begin(() => heddle.as(by).startTurn(start))).turnId;
  } catch (error) {
    if (isHeddleError(error) && error.code === "turn.active") return undefined;
    throw error;
  }
}

/** False when the turn has ended meanwhile. */
async function injected({ heddle }: ChatContext, turnId: string, given: Steering): Promise<boolean> {
  try {
    const { by, input, ...more } = given;
    await heddle.as(by).steer(turnId, input, more);
    return true;
  } catch (error) {
    if (isHeddleError(error) && error.code === "turn.not-found") return false;
    throw error;
  }
}

const CANCELLED = { code: "turn.interrupted", message: "cancelled by the client" } as const;

export const cancel: ChatHandler<"chat.cancel"> = async ({ chat_id, turn_id }, { server, connection }) => {
  const row = await requireChat(server, { chat_id });
  const { journal } = server.heddle;
  const wanted = turn_id ?? (await openTurnOf(server, row));
  if (wanted === undefined) throw new HeddleError("turn.not-found", `no turn of chat ${row.id} runs`);
  if (await server.queue.remove({ threadId: row.id, turnId: wanted, failure: CANCELLED, by: connection.by })) {
    return { result: { ok: true, turn_id: wanted, status: "interrupted" } };
  }
  const turn = await journal.threads.turn(wanted);
  if (turn?.threadId !== row.id) {
    if (await wasDequeued(server, row, wanted)) return { result: { ok: true, turn_id: wanted, status: "interrupted" } };
    throw new HeddleError("turn.not-found", `no turn ${wanted} in chat ${row.id}`);
  }
  if (turn.status !== "open") return { result: { ok: true, turn_id: wanted, status: turn.status } };
  await interrupt(server.heddle.as(connection.by), wanted);
  const end = await awaitTerminal(journal, row.id, wanted, turn.admittedVersion, AbortSignal.timeout(END_MS));
  return { result: { ok: true, turn_id: wanted, status: end.body.status } };
};

/** It was removed from the queue before it began. */
async function wasDequeued({ heddle }: ChatContext, { id: stream }: ThreadRow, turnId: string): Promise<boolean> {
  return (await heddle.journal.marks.versions({ stream, kinds: ["turn.dequeued"], name: turnId })).length > 0;
}

async function interrupt(acts: Acts, turnId: string): Promise<void> {
  try {
    await acts.interrupt(turnId, CANCELLED);
  } catch (error) {
    // It ended by itself a moment ago.
    if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
  }
}

export const respond: ChatHandler<"chat.approval.respond"> = async (params, { server, connection }) => {
  const approvalId = String(params.request_id ?? params.codex_request_id);
  const threadId = await threadOf(server, approvalId, params.chat_id);
  const decision = decisionOf(params.decision);
  await refuseLeavingSandbox(server.heddle, connection.principal, { threadId, approvalId, decision });
  try {
    const { note, answers, content, granted } = params;
    const fields = note === undefined ? {} : { reason: note };
    await server.heddle.as(connection.by).answer({
      threadId,
      approvalId,
      decision,
      answers,
      content,
      granted,
      ...fields,
    });
    return { result: { ok: true } };
  } catch (error) {
    if (isHeddleError(error) && error.code === "approval.already-resolved")
      return { result: { ok: true, already: true } };
    throw error;
  }
};

/** A question that waits is in a turn that runs; of one that was answered the hub knows where it was. */
async function threadOf({ heddle, hub }: ChatContext, approvalId: string, chatId: string | undefined): Promise<string> {
  const { journal } = heddle;
  const known = chatId ?? hub.threadOfApproval(approvalId);
  if (known !== undefined && (await journal.threads.get(known)) !== undefined) return known;
  for (const { threadId: stream, admittedVersion: after } of await journal.threads.openTurns()) {
    const look = { stream, kinds: ["approval.requested"], name: approvalId, after } as const;
    if ((await journal.marks.versions(look)).length > 0) return stream;
  }
  throw new HeddleError("approval.not-found", `no question ${approvalId.slice(0, 100)}`);
}
