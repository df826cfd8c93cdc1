/**
 * The tool calls of one model answer. Calls that only read run side by side; everything else runs alone and in order,
 * because the model wrote them in that order. The intent of a call is durable before `dispatch` lets it act.
 *
 *   intended, item started ─▶ dispatch ─▶ settled, item completed
 *                                      └▶ settled with processId (the command goes on, the model has its answer),
 *                                         item followed: completed when the command ends, at the latest with the turn
 */
import { HeddleError, newItemId, type EventOf, type Item, type ModelToolCall } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { dispatch, fitText, HOP, type DispatchOutcome, type Sandbox, type Toolset } from "@heddle/tools";
import { textOf } from "../context/compacted-context.ts";
import { hookTool } from "../hooks/hook-tools.ts";
import type { RunnerEvent, TurnIo, TurnRequest } from "./runner.ts";
import { hookNotes } from "./notes.ts";

/** Enough to hide latency, few enough not to starve the machine. */
const MAX_PARALLEL_READS = 8;

export interface CallsContext {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly toolset: Toolset;
  /** How many envelopes the turn had entered when the calls were written; absent: as many as now. */
  readonly offeredIn?: number | undefined;
}

/** Records every call and its result. Stops before the next call once the turn is aborted. */
export async function runCalls(calls: readonly ModelToolCall[], context: CallsContext): Promise<void> {
  // A sandbox that could not be finished ends the turn; it must not become a result for the model.
  await recordOpened(context);
  const { offeredIn = context.io.policy.hops.entered } = context;
  for (const group of inGroups(calls, context.toolset)) {
    if (context.io.signal.aborted) break;
    const ends = await Promise.allSettled(group.map((call) => runCall(call, context, offeredIn)));
    // All have ended before one's failure is thrown: nothing of the turn runs on after its terminal event.
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}

const recorded = new WeakSet<Sandbox>();

/** Once per sandbox: what the kernel enforces is known only when it is ready. */
async function recordOpened({ turn: { turnId }, io }: CallsContext): Promise<void> {
  const { sandbox } = io.policy.hops.current;
  const holds = await sandbox.ready;
  if (recorded.has(sandbox)) return;
  recorded.add(sandbox);
  await io.record([{ type: "sandbox.opened", v: 1, turnId, level: sandbox.level, holds }], "system");
}

function inGroups(calls: readonly ModelToolCall[], toolset: Toolset): ModelToolCall[][] {
  const groups: ModelToolCall[][] = [];
  let reads: ModelToolCall[] | undefined;
  for (const call of calls) {
    const tool = toolset.resolve(call.name);
    if (tool?.name === HOP || tool?.effects.every((effect) => effect === "read") !== true) {
      groups.push([call]);
      reads = undefined;
    } else if (reads !== undefined && reads.length < MAX_PARALLEL_READS) {
      reads.push(call);
    } else {
      reads = [call];
      groups.push(reads);
    }
  }
  return groups;
}

/** `offeredIn`: how many envelopes the turn had entered when the model was offered its tools. */
async function runCall(call: ModelToolCall, context: CallsContext, offeredIn: number): Promise<void> {
  const { turn, io, toolset } = context;
  const { hooks, hops, remembered } = io.policy;
  const { turnId } = turn;
  const notes: RunnerEvent[] = [];
  let intended: unknown;
  const outcome = await dispatch(call, {
    ...turn.sandboxContext,
    ...hops.current,
    hops,
    meter: io.policy.meters.of(hops.current.envelope),
    toolset,
    cwd: turn.workspace,
    changedTo: hops.entered === offeredIn ? undefined : hops.current.envelope.id,
    signal: io.signal,
    remembered,
    newItemId: () => turn.carried?.questions.get(call.callId)?.question.itemId ?? newItemId(),
    async guard(tool, input) {
      const { name, names, input: shown } = hookTool(tool, input);
      const payload = { tool_name: name, tool_input: shown, tool_use_id: call.callId };
      const verdict = await hooks.run("PreToolUse", { subject: call.callId, names, payload });
      notes.push(...hookNotes(turnId, "PreToolUse", verdict.notes));
      return verdict.isBlocked ? `a hook of the user refused this call: ${verdict.reason}` : undefined;
    },
    async onStarted(item, intent) {
      intended = intent.arguments;
      failpoint("turn.before-intent");
      await io.record([
        { type: "tool.intended", v: 1, turnId, ...intent },
        { type: "item.started", v: 1, turnId, item },
      ]);
      failpoint("turn.after-intent");
    },
    ask: (question, signal) => io.ask(question, signal),
    async onViolation(violation) {
      await io.record([{ type: "path.violated", v: 1, turnId, callId: call.callId, ...violation }], "system");
    },
    stream: (delta) => io.stream(delta),
  });
  failpoint("turn.after-effect");
  const { item, isStarted, ongoing } = outcome;
  await io.record([
    ...(isStarted ? [] : [startedEvent(turnId, item)]),
    settledEvent(turnId, call, outcome),
    ...(ongoing === undefined ? [{ type: "item.completed" as const, v: 1 as const, turnId, item }] : []),
  ]);
  // Not awaited: the turn continues beside the command.
  if (ongoing !== undefined) io.follow(item.id, ongoing).catch(() => undefined);
  failpoint("turn.after-settle");
  // As above: without its sandbox the turn is over.
  if (outcome.failure?.code === "sandbox.failed") throw new HeddleError("sandbox.failed", outcome.failure.message);
  if (isStarted && outcome.kind !== "cancelled") notes.push(...(await askAfter(call, intended, outcome, context)));
  if (notes.length > 0) await io.record(notes, "system");
}

const MAX_RESPONSE_BYTES = 64 * 1024;

/** Notes of PostToolUse hooks for the model. The result is stored already. */
async function askAfter(
  call: ModelToolCall,
  intended: unknown,
  outcome: DispatchOutcome,
  { turn, io }: CallsContext,
): Promise<RunnerEvent[]> {
  const { name, names, input } = hookTool(outcome.tool, intended);
  const response = { output: fitText(textOf(outcome.output), MAX_RESPONSE_BYTES), is_error: outcome.kind !== "ok" };
  const payload = { tool_name: name, tool_input: input, tool_response: response, tool_use_id: call.callId };
  const verdict = await io.policy.hooks.run("PostToolUse", { subject: call.callId, names, payload });
  return hookNotes(turn.turnId, "PostToolUse", [...verdict.notes, ...(verdict.isBlocked ? [verdict.reason] : [])]);
}

/** A call that was refused before it began is still shown as a started and completed item. */
function startedEvent(turnId: string, item: Item): RunnerEvent {
  const started = "status" in item ? { ...item, status: "inProgress" as const } : item;
  if ("error" in started) delete started.error;
  return { type: "item.started", v: 1, turnId, item: started };
}

function settledEvent(turnId: string, call: ModelToolCall, outcome: DispatchOutcome): EventOf<"tool.settled"> {
  return {
    type: "tool.settled",
    v: 1,
    turnId,
    callId: call.callId,
    itemId: outcome.item.id,
    tool: outcome.tool,
    outcome: outcome.kind,
    ...(outcome.failure === undefined ? {} : { failure: outcome.failure }),
    output: [...outcome.output],
    ...(outcome.ongoing === undefined ? {} : { processId: outcome.ongoing.processId }),
    ...(outcome.bytesWritten === undefined ? {} : { bytesWritten: outcome.bytesWritten }),
  };
}
