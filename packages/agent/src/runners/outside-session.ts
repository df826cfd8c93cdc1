/**
 * One turn of an outside agent from its beginning to its end: its tools, its calls in their order, and what it is told. The turn
 * is over when its client has left or the turn was stopped; nothing of it runs on.
 */
import {
  canonical,
  HeddleError,
  isHeddleError,
  type Author,
  type By,
  type Envelope,
  type EventOf,
  type InputPart,
  type ItemDelta,
} from "@heddle/protocol";
import { envelopeHash } from "@heddle/tools";
import { schemaProblem } from "../approvals/hop-guards.ts";
import { markedInput } from "../context/input-role.ts";
import { createTurnTools, type TurnToolsOptions } from "../mcp/mcp.ts";
import type { ReadJournal } from "../threads/history.ts";
import { admissionOf, NOTHING_SPENT } from "../turns/outcome.ts";
import { runCalls } from "./calls.ts";
import { saidOf, userMessage } from "./notes.ts";
import { createOutsideCalls } from "./outside-calls.ts";
import { resultIn, resultOf } from "./outside-results.ts";
import type { OutsideCall, OutsideDelta, OutsideResult, Surface } from "./outside.ts";
import type { RunContext } from "./prompt.ts";
import type { Runner, TurnIo, TurnRequest } from "./runner.ts";

/** What is left behind is small: a summary, names of files. */
const MAX_OUTCOME_CHARS = 64 * 1024;

/** The turn from its client's side. */
export interface Session extends By {
  readonly surface: Surface;
  readonly idleMs: number;
  readonly calls: readonly string[];
  call(call: OutsideCall): Promise<OutsideResult>;
  cancel(callId: string): "cancelling" | "settled" | "unknown";
  listen(listener: (delta: OutsideDelta) => void): Disposable;
  leave(outcome: unknown): Promise<void>;
}

export interface Conversation {
  readonly journal: ReadJournal;
  readonly tools: Omit<TurnToolsOptions, "turn" | "io"> & Pick<RunContext, "giveMessages">;
  readonly maxIdleMs: number;
  readonly onDelta: (threadId: string, listener: (delta: ItemDelta) => void) => Disposable;
  readonly onOpen: (session: Session) => void;
  /** Its client has been silent for too long: ends the turn. */
  readonly onSilent: (error: HeddleError) => Promise<void>;
}

export async function converse(turn: TurnRequest, given: TurnIo, asked: Conversation): ReturnType<Runner["run"]> {
  const { threadId } = turn;
  const { by, outside } = admissionOf(turn);
  const { idleMs = asked.maxIdleMs } = outside ?? {};
  const settled = new Map<string, EventOf<"tool.settled">>();
  const items = new Map<string, string>();
  const io = noting(given, { settled, items });
  const takeTold = toldWith(io, asked.tools.giveMessages);
  const tools = createTurnTools(() => ({ family: "other" }), { ...asked.tools, turn, io });
  const over = Promise.withResolvers<void>();
  over.promise.catch(() => undefined);
  let result: unknown;
  const offers = createOffers(io);
  const listeners = new Set<(delta: OutsideDelta) => void>();

  await using calls = createOutsideCalls(
    {
      carryOut: (call, signal) => carryOut(call, { turn, io, tools, settled, signal, takeTold }),
      reread: (callId, between) => resultIn(asked.journal, { threadId, turnId: turn.turnId, callId, between }),
      version: () => io.seenVersion(),
    },
    { idleMs, onSilent: (error) => void asked.onSilent(error).catch((reason: unknown) => over.reject(reason)) },
  );
  using _deltas = asked.onDelta(threadId, ({ itemId, delta }) => {
    const callId = items.get(itemId);
    if (callId !== undefined) for (const listener of listeners) listener({ callId, itemId, delta });
  });
  const stop = (): void => over.reject(io.signal.reason);
  io.signal.addEventListener("abort", stop, { once: true });
  try {
    await tools.refresh();
    io.signal.throwIfAborted();
    turn.watch?.[Symbol.dispose]();
    asked.onOpen({
      by,
      idleMs,
      get surface() {
        return { envelope: offers.tell(), tools: tools.toolset.offered };
      },
      get calls() {
        return calls.open;
      },
      call: (call) => calls.order(offers.stamp(call)),
      cancel: (callId) => calls.cancel(callId),
      listen(listener) {
        listeners.add(listener);
        return { [Symbol.dispose]: () => void listeners.delete(listener) };
      },
      leave: (outcome) =>
        calls.last(async () => {
          requireOutcome(outcome, io.policy.hops.current.envelope);
          await takeAdded(turn, io);
          result = outcome;
          over.resolve();
        }),
    });
    await over.promise;
    return { kind: "completed", spent: NOTHING_SPENT, ...(result === undefined ? {} : { result }) };
  } catch (error) {
    if (io.signal.aborted) return { kind: "interrupted", spent: NOTHING_SPENT };
    throw error;
  } finally {
    io.signal.removeEventListener("abort", stop);
  }
}

interface CarryingOut {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly tools: ReturnType<typeof createTurnTools>;
  readonly settled: Map<string, EventOf<"tool.settled">>;
  /** Of this call alone. */
  readonly signal: AbortSignal;
  readonly takeTold: ReturnType<typeof toldWith>;
}

async function carryOut(
  { callId, tool, arguments: args, offeredIn }: StampedCall,
  { turn, io, tools, settled, signal, takeTold }: CarryingOut,
): Promise<Omit<OutsideResult, "cursor">> {
  io.signal.throwIfAborted();
  await tools.refresh();
  const call = { kind: "toolCall", callId, name: tool, input: JSON.stringify(args), shape: "json" } as const;
  const either = AbortSignal.any([io.signal, signal]);
  const ofCall: TurnIo = {
    ...io,
    signal: either,
    ask: (question, own) => io.ask(question, own === undefined ? either : AbortSignal.any([own, either])),
  };
  const { envelope: before } = turn.sandboxContext;
  await runCalls([call], { turn, io: ofCall, toolset: tools.toolset, offeredIn });
  // The answer to a hop says what may be called from here on.
  if (turn.sandboxContext.envelope !== before) await tools.refresh();
  const added = [...(await takeAdded(turn, io)), ...(await takeTold())];
  const end = settled.get(callId);
  settled.delete(callId);
  if (end === undefined) throw new HeddleError("tool.cancelled", "the call was stopped before it began");
  return { ...resultOf(end), ...(added.length === 0 ? {} : { added }) };
}

interface StampedCall extends OutsideCall {
  readonly offeredIn?: number;
}

/** For which envelope a call was meant: one from before a hop is refused, like later calls of a model's answer. */
function createOffers({ policy: { hops } }: TurnIo) {
  /** Hash of an envelope that was told → how many the turn had entered then. */
  const told = new Map<string, number>();
  return {
    tell(): Envelope {
      const { envelope } = hops.current;
      told.set(envelopeHash(envelope), hops.entered);
      return envelope;
    },
    stamp(call: OutsideCall): StampedCall {
      const { envelopeHash: hash } = call;
      return hash === undefined ? call : { ...call, offeredIn: told.get(hash) ?? -1 };
    },
  };
}

/** What users have added, as messages of the turn; the client is told it with the result of its call. */
async function takeAdded({ turnId }: TurnRequest, io: TurnIo): Promise<readonly (readonly InputPart[])[]> {
  const steering = await io.takeSteering();
  for (const { input, by, ...said } of steering) await io.record(userMessage(turnId, input, saidOf(said)), by);
  return steering.map(({ input, role }) => markedInput(input, role));
}

/** Messages of other agents that wait for the thread; never when its client leaves, who would not be told. */
function toldWith(io: TurnIo, giveMessages: RunContext["giveMessages"]) {
  let isFirst = true;
  return async (): Promise<readonly (readonly InputPart[])[]> => {
    const mayWait = io.takeArrived() || isFirst;
    isFirst = false;
    const told = mayWait ? await giveMessages() : [];
    if (told.length > 0) await io.record(told);
    return told.map(({ text }) => [{ type: "text", text }]);
  };
}

/** Throws `usage.invalid`: the agent stays where it is. */
function requireOutcome(outcome: unknown, { id, outcome: shape }: Envelope): void {
  if (outcome === undefined) return;
  if (canonical(outcome).length > MAX_OUTCOME_CHARS)
    throw new HeddleError("usage.invalid", `an outcome has at most ${MAX_OUTCOME_CHARS} characters`);
  const problem = shape === undefined ? undefined : problemOf(outcome, shape);
  if (problem !== undefined)
    throw new HeddleError("usage.invalid", `the envelope "${id}" is left with another outcome: ${problem}`);
}

/** A schema that cannot be checked fits nothing. */
function problemOf(outcome: unknown, shape: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return schemaProblem(outcome, shape, "outcome");
  } catch (error) {
    if (isHeddleError(error)) return error.message;
    throw error;
  }
}

interface Noted {
  readonly settled: Map<string, EventOf<"tool.settled">>;
  /** Item → call, of items that have not ended. */
  readonly items: Map<string, string>;
}

/** Keeps the result of each call as it is stored, and which call an item belongs to while it runs. */
function noting(io: TurnIo, { settled, items }: Noted): TurnIo {
  return {
    ...io,
    async record(events, author?: Author) {
      for (const event of events) if (event.type === "tool.intended") items.set(event.itemId, event.callId);
      const stored = await io.record(events, author);
      for (const event of stored) {
        if (event.type === "tool.settled") settled.set(event.callId, event);
        if (event.type === "item.completed") items.delete(event.item.id);
      }
      return stored;
    },
  };
}
