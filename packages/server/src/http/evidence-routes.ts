/** The evidence: query, count, one entry, its replies, notes, and what comes as it comes. */
import { noteEvidence } from "@heddle/agent";
import { HeddleError, type EvidenceQuery } from "@heddle/protocol";
import {
  EmptyBody,
  EvidenceChainAnswer,
  EvidenceCount,
  EvidenceDetail,
  EvidenceEntry,
  EvidenceFilters,
  EvidenceList,
  EvidenceListQuery,
  EvidenceParams,
  EvidenceStreamQuery,
  GateAnswer,
  GateParams,
  NoteAboutBody,
  NoteBody,
  ThreadParams,
} from "@heddle/protocol/http";
import type { EvidenceRecord } from "@heddle/journal";
import type { z } from "zod";
import { isOwner } from "../access/full-access.ts";
import { sseOutput } from "./events/outputs.ts";
import type { Frame } from "./events/frames.ts";
import { route, type HttpCall, type HttpContext, type Route } from "./route.ts";
import { requireThread } from "./views.ts";

/** Fields without a value are left out; what a value may be is checked by whoever answers. */
function queryOf(given: object): EvidenceQuery {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

async function requireRecord({ heddle }: HttpContext, id: string): Promise<EvidenceRecord> {
  const record = await heddle.journal.evidence.get(id);
  if (record !== undefined) return record;
  throw new HeddleError("evidence.not-found", `there is no entry ${id}`, { details: { id } });
}

/** Entries after a position, then live, until the client has gone. Without a position: from now on. */
async function stream(
  { after, follow = true, ...filters }: z.output<typeof EvidenceStreamQuery>,
  { context, principal, response, lastEventId }: HttpCall,
): Promise<void> {
  if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
  const { journal } = context.heddle;
  const { evidence } = journal;
  const query = queryOf(filters);
  const from = cursorOf(after, lastEventId) ?? (follow ? await journal.position() : 0);
  // A wrong query is refused before anything is sent.
  await evidence.query({ ...query, limit: 1 });
  const serve = context.hub.admitFeed({ principal, after: from }, async (reader, stopping) => {
    const signal = AbortSignal.any([reader.gone, stopping]);
    const entries = follow ? evidence.subscribe(query, { after: from, signal }) : stored(context, query, from);
    for await (const entry of entries) {
      reader.sendOne(frameOf(entry));
      if (!(await reader.room())) return false;
    }
    return true;
  });
  await serve(sseOutput(response));
}

function frameOf(entry: z.output<typeof EvidenceEntry>): Frame {
  const data = JSON.stringify(entry);
  const cursor = entry.position;
  return { cursor, bytes: Buffer.from(`id: ${cursor}\ndata: ${data}\n\n`), text: undefined };
}

async function* stored(
  { heddle }: HttpContext,
  query: EvidenceQuery,
  after: number,
): AsyncIterable<z.output<typeof EvidenceEntry>> {
  for (let cursor: string | undefined; ;) {
    const at = cursor === undefined ? {} : { cursor };
    const page = await heddle.journal.evidence.query({ ...query, order: "oldest", ...at });
    for (const entry of page.entries) if (entry.position > after) yield entry;
    if (page.next === undefined) return;
    cursor = page.next;
  }
}

function cursorOf(after: number | undefined, lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === "") return after;
  if (/^\d{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new HeddleError("cursor.expired", "Last-Event-ID is not a cursor of this server");
}

export const EVIDENCE_ROUTES: readonly Route[] = [
  route({
    name: "queryEvidence",
    on: "GET /api/evidence",
    summary: "What agents and users did, asked and concluded, newest first",
    scope: "read",
    query: EvidenceListQuery,
    answer: EvidenceList,
    async handle({ query }, { context }) {
      const { entries, next } = await context.heddle.journal.evidence.query(queryOf(query));
      return { data: [...entries], nextCursor: next ?? null };
    },
  }),
  route({
    name: "countEvidence",
    on: "GET /api/evidence/count",
    summary: "How many entries match",
    scope: "read",
    query: EvidenceFilters,
    answer: EvidenceCount,
    handle: async ({ query }, { context }) => ({ count: await context.heddle.journal.evidence.count(queryOf(query)) }),
  }),
  route({
    name: "followEvidence",
    on: "GET /api/evidence/events",
    summary: "Entries after a position, then live, as server-sent events; the id of a message is the position",
    scope: "read",
    query: EvidenceStreamQuery,
    answer: "stream",
    handle: ({ query }, call) => stream(query, call),
  }),
  route({
    name: "readEvidence",
    on: "GET /api/evidence/{entryId}",
    summary: "One entry, with the whole event it stands for",
    scope: "read",
    params: EvidenceParams,
    answer: EvidenceDetail,
    handle: ({ params }, { context }) => requireRecord(context, params.entryId),
  }),
  route({
    name: "readEvidenceChain",
    on: "GET /api/evidence/{entryId}/chain",
    summary: "What an entry replies to, what replied to it, and the threads whose past it is in",
    scope: "read",
    params: EvidenceParams,
    answer: EvidenceChainAnswer,
    async handle({ params: { entryId } }, { context }) {
      const { body: _body, ...entry } = await requireRecord(context, entryId);
      const { evidence } = context.heddle.journal;
      const [up, down] = [await evidence.ancestors(entryId), await evidence.descendants(entryId)];
      const forks = [...(await evidence.forks(entryId))];
      const chain = { ancestors: [...up.entries], entry, descendants: [...down.entries] };
      return { ...chain, isCut: up.isCut || down.isCut, forks };
    },
  }),
  route({
    name: "noteEvidence",
    on: "POST /api/threads/{threadId}/evidence",
    summary: "A note in a thread; its author is the caller",
    scope: "write",
    params: ThreadParams,
    body: NoteBody,
    answer: EvidenceEntry,
    status: 201,
    handle: ({ params, body }, { context, by }) =>
      noteEvidence(context.heddle.journal, { threadId: params.threadId, note: body, by }),
  }),
  route({
    name: "noteEvidenceAbout",
    on: "POST /api/evidence",
    summary: "A note about a subject, beside any thread; its author is the caller",
    scope: "write",
    body: NoteAboutBody,
    answer: EvidenceEntry,
    status: 201,
    handle: ({ body }, { context, by }) => noteEvidence(context.heddle.journal, { note: body, by }),
  }),
  route({
    name: "runGate",
    on: "POST /api/threads/{threadId}/gates/{name}",
    summary:
      "Looks at the guards of a gate in the envelope of an idle thread; passed or refused, the proof is on record",
    scope: "write",
    params: GateParams,
    body: EmptyBody,
    answer: GateAnswer,
    async handle({ params: { threadId, name } }, { context, principal, by }) {
      await requireThread(context.heddle.journal, threadId);
      return context.heddle.as(by).runGate({ threadId, name, staysInSandbox: !isOwner(principal) });
    },
  }),
];
