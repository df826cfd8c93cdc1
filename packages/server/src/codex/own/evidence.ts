/** The evidence for clients of app-server. The author of a note is the connection's. */
import { setTimeout as delay } from "node:timers/promises";
import { noteEvidence } from "@heddle/agent";
import {
  EvidenceNote,
  EvidenceQuery,
  GateName,
  HeddleError,
  reasonOf,
  uuidv7,
  type EvidenceEntry,
} from "@heddle/protocol";
import { z } from "zod";
import type { Connection } from "../../rpc/connection.ts";
import { heldBack } from "../../rpc/held.ts";
import { requireKept } from "../thread-facts.ts";
import { ownMethod } from "./own-method.ts";

const id = z.string().min(1).max(256);
const { order: _order, limit: _limit, cursor: _cursor, ...filters } = EvidenceQuery.shape;

export const queryEvidence = ownMethod(EvidenceQuery, async (query, { server }) => {
  const { entries, next } = await server.heddle.journal.evidence.query(query);
  return { result: { data: entries, nextCursor: next ?? null } };
});

export const countEvidence = ownMethod(z.strictObject(filters), async (query, { server }) => {
  return { result: { count: await server.heddle.journal.evidence.count(query) } };
});

export const getEvidence = ownMethod(z.strictObject({ id }), async ({ id }, { server }) => {
  return { result: { entry: required(await server.heddle.journal.evidence.get(id), id) } };
});

const Chain = z.strictObject({ id, limit: z.int().min(1).max(10_000).optional() });

export const readChain = ownMethod(Chain, async ({ id, limit }, { server }) => {
  const { evidence } = server.heddle.journal;
  const { body: _body, ...entry } = required(await evidence.get(id), id);
  const [up, down] = [await evidence.ancestors(id, limit), await evidence.descendants(id, limit)];
  const forks = await evidence.forks(id);
  const chain = { ancestors: up.entries, entry, descendants: down.entries };
  return { result: { ...chain, isCut: up.isCut || down.isCut, forks } };
});

/** Without a thread: beside any, about its subject. */
const Note = z.strictObject({ threadId: z.string().optional(), ...EvidenceNote.shape });

export const note = ownMethod(Note, async ({ threadId, ...given }, call) => {
  const { server, connection } = call;
  const entry = await noteEvidence(server.heddle.journal, { threadId, note: given, by: connection.by });
  return { result: { entry } };
});

const RunGate = z.strictObject({ threadId: z.string(), name: GateName });

/** What happened is told from the journal, after the answer. */
export const gate = ownMethod(RunGate, async ({ threadId, name }, { server, connection }) => {
  const { id: thread } = await requireKept(server, threadId);
  return heldBack(connection, thread, async () => ({
    ...(await server.heddle.as(connection.by).runGate({ threadId: thread, name })),
  }));
});

/** Of one connection. */
const MAX_SUBSCRIPTIONS = 16;
/** How often a client that is behind is looked at. */
const LOOK_MS = 20;

const subscriptions = new WeakMap<Connection, Map<string, AbortController>>();

/** `after`: a position; absent: from now on. Entries come as `evidence/entry`. */
const Subscribe = z.strictObject({ ...filters, after: z.int().min(0).optional() });

export const subscribe = ownMethod(Subscribe, async ({ after, ...query }, { server, connection }) => {
  const own = subscriptions.get(connection) ?? new Map<string, AbortController>();
  subscriptions.set(connection, own);
  if (own.size >= MAX_SUBSCRIPTIONS) {
    throw new HeddleError(
      "door.overloaded",
      `${MAX_SUBSCRIPTIONS} subscriptions are open on this connection; end one first`,
    );
  }
  const { journal } = server.heddle;
  // From here on, also what is stored before the answer is read.
  const from = after ?? (await journal.position());
  const subscriptionId = `sub_${uuidv7()}`;
  const control = new AbortController();
  own.set(subscriptionId, control);
  const entries = journal.evidence.subscribe(query, { after: from, signal: control.signal });
  return {
    result: { subscriptionId, after: from },
    after() {
      const told = tell(connection, { subscriptionId, entries })
        .catch((error: unknown) => server.log(`a subscription to the evidence ended: ${reasonOf(error)}`))
        .finally(() => own.delete(subscriptionId));
      const forget = connection.ends.add({
        async [Symbol.asyncDispose]() {
          control.abort();
          await told;
        },
      });
      told.then(forget, forget);
    },
  };
});

async function tell(
  connection: Connection,
  { subscriptionId, entries }: { readonly subscriptionId: string; readonly entries: AsyncIterable<EvidenceEntry> },
): Promise<void> {
  for await (const entry of entries) {
    connection.notify({ method: "evidence/entry", params: { subscriptionId, entry } });
    // It is waited for: it holds a cursor, not a queue.
    while (!connection.isIdle && !connection.isClosed) await delay(LOOK_MS);
    if (connection.isClosed) return;
  }
}

const Unsubscribe = z.strictObject({ subscriptionId: z.string() });

export const unsubscribe = ownMethod(Unsubscribe, async ({ subscriptionId }, { connection }) => {
  const control = subscriptions.get(connection)?.get(subscriptionId);
  control?.abort();
  return { result: { ended: control !== undefined } };
});

function required<T>(record: T | undefined, id: string): T {
  if (record !== undefined) return record;
  throw new HeddleError("evidence.not-found", `there is no entry ${id}`, { details: { id } });
}
