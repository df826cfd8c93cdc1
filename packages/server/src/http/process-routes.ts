/** What the commands of a thread run now, and the whole outputs of those that have ended. */
import { once } from "node:events";
import { HeddleError, type ClientAct } from "@heddle/protocol";
import {
  EndedProcess,
  EndProcessBody,
  InputBody,
  InputParams,
  OutputParams,
  OutputQuery,
  ProcessList,
  ProcessParams,
  ThreadParams,
  WrittenInput,
} from "@heddle/protocol/http";
import { endProcess, inspectProcess, treeUse, type ProcessInfo } from "@heddle/tools";
import type { z } from "zod";
import { isOwner, refuseInputToFullAccess } from "../access/full-access.ts";
import { recordAct } from "../host/client-acts.ts";
import { CAREFUL_HEADERS } from "./answer.ts";
import { route, whileAsked, type HttpCall, type Route } from "./route.ts";
import { requireThread } from "./views.ts";

type Commands = z.output<typeof ProcessList>["data"];

/** Time to end cleanly, before it is killed. */
const END_MS = 2_000;

function commandsOf({ context: { heddle } }: HttpCall, threadId: string): Commands {
  return heddle.runningCommands(threadId).map(({ processId, command, pid, hasInput, awaitedBy, isBeyond }) => ({
    processId,
    command,
    isBeyond,
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

async function typeInto(
  { threadId, processId }: z.output<typeof InputParams>,
  { text = "", end = false }: z.output<typeof InputBody>,
  call: HttpCall,
): Promise<z.output<typeof WrittenInput>> {
  const { heddle } = call.context;
  await requireThread(heddle.journal, threadId);
  await refuseInputToFullAccess(heddle, call.principal, threadId);
  const found = heddle.runningCommands(threadId).find((one) => one.processId === processId);
  if (found === undefined) throw noCommand(processId);
  if (found.isBeyond && !isOwner(call.principal))
    throw new HeddleError(
      "door.forbidden",
      "this command runs beyond the sandbox of its thread; only an owner types into it",
    );
  if (!found.hasInput) throw noInput(processId);
  const act = { kind: "input", processId, command: found.command, text, isEnd: end } as const;
  return onRecord(call, { threadId, act }, async () => {
    const outcome = text === "" ? "sent" : await heddle.writeInput(threadId, processId, text);
    if (outcome === "gone") throw noCommand(processId);
    if (outcome === "closed") throw noInput(processId);
    if (end) await heddle.endInputs(threadId, processId);
    return { outcome };
  });
}

function noCommand(processId: string): HeddleError {
  return new HeddleError("door.not-found", `no command ${processId} runs in this thread now`);
}

function noInput(processId: string): HeddleError {
  return new HeddleError(
    "task.illegal",
    `command ${processId} was started without an input; end it, or steer the agent`,
  );
}

/** Who did what to a command is stored before it is done. */
async function onRecord<T>(
  { context: { heddle }, by }: HttpCall,
  { threadId, act }: { readonly threadId: string; readonly act: ClientAct },
  run: () => Promise<T>,
): Promise<T> {
  const begun = await recordAct({ heddle, by, client: "http" }, { threadId, act });
  try {
    const done = await run();
    await begun.settled({ outcome: "ok" });
    return done;
  } catch (error) {
    await begun.failed(error);
    throw error;
  }
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
      if (found === undefined) return { outcome: "gone" as const };
      const act = { kind: "endProcess", pid, command: found.command } as const;
      return onRecord(call, { threadId, act }, async () => ({
        outcome: await endProcess({ pid, startTicks }, END_MS),
      }));
    },
  }),
  route({
    name: "writeInput",
    on: "POST /api/threads/{threadId}/commands/{processId}/input",
    summary: "Types into a running command of a thread, or ends its input; what was typed is on record",
    scope: "write",
    params: InputParams,
    body: InputBody,
    answer: WrittenInput,
    handle: ({ params, body }, call) => typeInto(params, body, call),
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
