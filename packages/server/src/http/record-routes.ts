/** The record: verified, taken elsewhere, taken over from elsewhere, deleted from. Bundles are lines, of any length. */
import { once } from "node:events";
import { purgeEvidence } from "@heddle/agent";
import {
  BundleQuery,
  CheckpointList,
  ImportAnswer,
  ImportQuery,
  LastVerdict,
  LastVerdictQuery,
  PurgeAnswer,
  PurgeBody,
  TaskParams,
  ThreadParams,
  VerdictAnswer,
  VerifyBody,
} from "@heddle/protocol/http";
import { bundleOf, lastVerdict, receive, takeOver, verdict } from "../record/record.ts";
import { CAREFUL_HEADERS, LINES_TYPE } from "./answer.ts";
import { route, whileAsked, type HttpCall, type Route } from "./route.ts";
import { requireTask } from "./task-views.ts";
import { requireThread } from "./views.ts";

/** A client that finds no last line has not got all of it: the connection is cut where the bundle cannot be finished. */
async function sendLines(lines: AsyncIterable<string>, call: HttpCall): Promise<void> {
  const { response } = call;
  const signal = whileAsked(call);
  response.writeHead(200, { ...CAREFUL_HEADERS, "content-type": `${LINES_TYPE}; charset=utf-8` });
  try {
    for await (const line of lines) {
      if (response.destroyed) return;
      if (!response.write(line)) await once(response, "drain", { signal });
    }
    response.end();
  } catch (error) {
    response.destroy();
    if (!signal.aborted) throw error;
  }
}

async function checkpoints(stream: string, { context: { heddle } }: HttpCall): Promise<CheckpointList> {
  const data = await heddle.journal.checkpoints(stream);
  return { data: data.map(({ version: seq, hash, at, keyId, signature }) => ({ seq, hash, at, keyId, signature })) };
}

export const RECORD_ROUTES: readonly Route[] = [
  route({
    name: "verifyRecord",
    on: "POST /api/verify",
    summary: "Verifies a thread, a task with the threads of its attempts, or the whole record, as heddle verify does",
    scope: "write",
    body: VerifyBody,
    answer: VerdictAnswer,
    handle: ({ body }, call) =>
      verdict(storeOf(call), body, { signal: whileAsked(call), limitMs: call.context.verifyMs }),
  }),
  route({
    name: "readLastVerdict",
    on: "GET /api/verify",
    summary: "What the last verification through this server found, and up to where",
    scope: "read",
    query: LastVerdictQuery,
    answer: LastVerdict,
    async handle({ query: { subject } }, { context: { heddle } }) {
      const position = await heddle.journal.position();
      return { verdict: lastVerdict(heddle.journal, subject) ?? null, position };
    },
  }),
  route({
    name: "listThreadCheckpoints",
    on: "GET /api/threads/{threadId}/checkpoints",
    summary:
      "Signed heads of the chain of a thread, oldest first; a client that keeps them sees a record that was rewritten",
    scope: "read",
    params: ThreadParams,
    answer: CheckpointList,
    async handle({ params: { threadId } }, call) {
      await requireThread(call.context.heddle.journal, threadId);
      return checkpoints(threadId, call);
    },
  }),
  route({
    name: "listTaskCheckpoints",
    on: "GET /api/tasks/{taskId}/checkpoints",
    summary: "Signed heads of the chain of a task, oldest first",
    scope: "read",
    params: TaskParams,
    answer: CheckpointList,
    async handle({ params: { taskId } }, call) {
      await requireTask(call.context.heddle.journal, taskId);
      return checkpoints(taskId, call);
    },
  }),
  route({
    name: "exportThread",
    on: "GET /api/threads/{threadId}/bundle",
    summary: "A thread with its past as lines that heddle verify checks on any machine",
    scope: "admin",
    params: ThreadParams,
    query: BundleQuery,
    answer: "lines",
    async handle({ params: { threadId }, query: { outputs = false } }, call) {
      const { journal } = call.context.heddle;
      await requireThread(journal, threadId);
      await sendLines(bundleOf(journal, threadId, outputs), call);
    },
  }),
  route({
    name: "importEvidence",
    on: "POST /api/evidence/import",
    summary: "Takes over the entries of a bundle, once its signatures are verified and its key is trusted",
    scope: "admin",
    query: ImportQuery,
    takes: "lines",
    answer: ImportAnswer,
    async handle({ query: { trustKey } }, call) {
      await using incoming = await receive(storeOf(call));
      for await (const piece of call.incoming) await incoming.bundle.write(piece);
      return await takeOver(storeOf(call), incoming, { by: call.by, trustKey });
    },
  }),
  route({
    name: "purgeEvidence",
    on: "POST /api/evidence/purge",
    summary: "Deletes what a thread said, what was imported, or a note in no thread; the chain still verifies",
    scope: "admin",
    body: PurgeBody,
    answer: PurgeAnswer,
    handle: async ({ body: { id } }, { context: { heddle }, by }) => ({ ...(await purgeEvidence(heddle, { id, by })) }),
  }),
];

function storeOf({ context: { heddle, home } }: HttpCall) {
  return { journal: heddle.journal, home };
}
