/** What the commands of a thread run now, and the whole outputs of those that have ended. */
import { once } from "node:events";
import { HeddleError } from "@heddle/protocol";
import {
  EndedProcess,
  EndProcessBody,
  OutputParams,
  OutputQuery,
  ProcessList,
  ProcessParams,
  ThreadParams,
} from "@heddle/protocol/http";
import { endProcess, inspectProcess, treeUse, type ProcessInfo } from "@heddle/tools";
import type { z } from "zod";
import { CAREFUL_HEADERS } from "./answer.ts";
import { route, whileAsked, type HttpCall, type Route } from "./route.ts";
import { requireThread } from "./views.ts";

type Commands = z.output<typeof ProcessList>["data"];

/** Time to end cleanly, before it is killed. */
const END_MS = 2_000;

function commandsOf({ context: { heddle } }: HttpCall, threadId: string): Commands {
  return heddle.runningCommands(threadId).map(({ processId, pid, hasInput, awaitedBy }) => ({
    processId,
    pid,
    hasInput,
    awaitedBy: [...awaitedBy],
    processes: treeUse([pid]).pids.flatMap((one) => {
      const info = inspectProcess(one);
      return info === undefined ? [] : [processView(info)];
    }),
  }));
}

function processView(info: ProcessInfo): Commands[number]["processes"][number] {
  const { pid, parent, startTicks, command, state, waitChannel, cpuMs, runningMs, openSockets, input } = info;
  return {
    pid,
    parent,
    startTicks,
    command,
    state,
    ...(waitChannel === undefined ? {} : { waitChannel }),
    cpuMs,
    runningMs: Math.round(runningMs),
    openSockets,
    readsStdin: input !== undefined,
  };
}

/** Text of an agent's command: no browser may take it for anything else. */
const OUTPUT_HEADERS = { ...CAREFUL_HEADERS, "content-type": "text/plain; charset=utf-8" } as const;

async function sendOutput(
  { sha256, threadId }: z.output<typeof OutputParams>,
  { from = 0, limit = Number.MAX_SAFE_INTEGER }: z.output<typeof OutputQuery>,
  call: HttpCall,
): Promise<void> {
  const { context, response } = call;
  const uses = await context.heddle.journal.blobs.uses([sha256]);
  if (!uses.some(({ stream }) => stream === threadId)) {
    throw new HeddleError("evidence.not-found", `thread ${threadId} has no output with the hash ${sha256}`);
  }
  const signal = whileAsked(call);
  const { readBlob } = await import("@heddle/journal/blobs");
  let at = 0;
  for await (const chunk of readBlob(context.home, sha256)) {
    if (signal.aborted) return;
    if (!response.headersSent) response.writeHead(200, OUTPUT_HEADERS);
    const part = chunk.subarray(Math.max(0, from - at), Math.max(0, from + limit - at));
    at += chunk.length;
    if (part.length > 0 && !response.write(part)) await once(response, "drain", { signal }).catch(() => undefined);
    if (at >= from + limit) break;
  }
  if (!response.headersSent) response.writeHead(200, OUTPUT_HEADERS);
  response.end();
}

export const PROCESS_ROUTES: readonly Route[] = [
  route({
    name: "listProcesses",
    on: "GET /api/threads/{threadId}/processes",
    summary: "Commands of a thread that run now, each with its processes",
    scope: "read",
    params: ThreadParams,
    answer: ProcessList,
    async handle({ params: { threadId } }, call) {
      await requireThread(call.context.heddle.journal, threadId);
      return { data: commandsOf(call, threadId) };
    },
  }),
  route({
    name: "endProcess",
    on: "POST /api/threads/{threadId}/processes/{pid}/end",
    summary: "Ends one process of a thread, with those below it; the turn continues",
    scope: "write",
    params: ProcessParams,
    body: EndProcessBody,
    answer: EndedProcess,
    async handle({ params: { threadId, pid }, body: { startTicks } }, call) {
      await requireThread(call.context.heddle.journal, threadId);
      const all = commandsOf(call, threadId).flatMap(({ processes }) => processes);
      const found = all.find((one) => one.pid === pid && one.startTicks === startTicks);
      return { outcome: found === undefined ? "gone" : await endProcess({ pid, startTicks }, END_MS) };
    },
  }),
  route({
    name: "readOutput",
    on: "GET /api/threads/{threadId}/outputs/{sha256}",
    summary: "The whole output of a command of the thread, which did not fit into the record, or some bytes of it",
    scope: "read",
    params: OutputParams,
    query: OutputQuery,
    answer: "text",
    handle: ({ params, query }, call) => sendOutput(params, query, call),
  }),
];
