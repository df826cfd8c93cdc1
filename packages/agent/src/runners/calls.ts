/**
 * The tool calls of one model answer. Calls that only read run side by side; everything else runs alone and in order,
 * because the model wrote them in that order. The intent of a call is durable before `dispatch` lets it act.
 */
import { newItemId, type Decision, type EventOf, type Item, type ModelToolCall } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { ModelInput } from "@heddle/models";
import { approvalKey, dispatch, type DispatchOutcome, type Toolset } from "@heddle/tools";
import { toolResult } from "../context.ts";
import type { RunnerEvent, TurnIo, TurnRequest } from "../runner.ts";

/** Enough to hide latency, few enough not to starve the machine. */
const MAX_PARALLEL_READS = 8;

export interface CallsContext {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly toolset: Toolset;
  /** Keys of acts accepted for the whole thread; grows as answers come in. */
  readonly remembered: Set<string>;
}

/** The results, in the order of the calls. Stops before the next call once the turn is aborted. */
export async function runCalls(calls: readonly ModelToolCall[], context: CallsContext): Promise<ModelInput[]> {
  const results: ModelInput[] = [];
  for (const group of inGroups(calls, context.toolset)) {
    if (context.io.signal.aborted) break;
    const ends = await Promise.allSettled(group.map((call) => runCall(call, context)));
    // All have ended before one's failure is told: nothing of the turn goes on behind its terminal event.
    for (const end of ends) {
      if (end.status === "rejected") throw end.reason;
      results.push(end.value);
    }
  }
  return results;
}

function inGroups(calls: readonly ModelToolCall[], toolset: Toolset): ModelToolCall[][] {
  const groups: ModelToolCall[][] = [];
  let reads: ModelToolCall[] | undefined;
  for (const call of calls) {
    if (toolset.resolve(call.name)?.effects.every((effect) => effect === "read") !== true) {
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

async function runCall(call: ModelToolCall, context: CallsContext): Promise<ModelInput> {
  const { turn, io, toolset, remembered } = context;
  const { turnId } = turn;
  const outcome = await dispatch(call, {
    ...turn.place,
    toolset,
    cwd: turn.workspace,
    signal: io.signal,
    remembered,
    newItemId,
    async onStarted(item, intent) {
      failpoint("turn.before-intent");
      await io.record([
        { type: "tool.intended", v: 1, turnId, ...intent },
        { type: "item.started", v: 1, turnId, item },
      ]);
      failpoint("turn.after-intent");
    },
    async ask(question): Promise<Decision> {
      const decision = await io.ask(question);
      if (decision === "acceptForThread") remembered.add(approvalKey(question));
      return decision;
    },
    async onViolation(violation) {
      await io.record([{ type: "path.violated", v: 1, turnId, callId: call.callId, ...violation }], "system");
    },
    stream: (delta) => io.stream(delta),
  });
  failpoint("turn.after-effect");
  const { item, isStarted } = outcome;
  const settled = settledEvent(turnId, call, outcome);
  await io.record([
    ...(isStarted ? [] : [startedEvent(turnId, item)]),
    settled,
    { type: "item.completed", v: 1, turnId, item },
  ]);
  failpoint("turn.after-settle");
  return toolResult(call, settled);
}

/** A call that was refused before it began still shows up as an item that was started and completed. */
function startedEvent(turnId: string, item: Item): RunnerEvent {
  const started = "status" in item ? { ...item, status: "inProgress" as const } : item;
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
  };
}
