/** One running turn as a program holds it: its events by a cursor, so that nothing depends on when they are read. */
import type { Heddle as Engine, TurnHandle } from "@heddle/agent";
import { OWNER, toHeddleError, type Decision } from "@heddle/protocol";
import { SteerBody, streamedEvent, type StartTurnInput, type StreamedEvent } from "@heddle/protocol/http";
import type { Answer, StartTurn, Turn, TurnResult } from "./types.ts";

interface TurnOptions {
  readonly engine: Engine;
  readonly handle: TurnHandle;
  readonly onDelta: StartTurn["onDelta"] | undefined;
  readonly signal: AbortSignal | undefined;
}

export function openTurn({ engine, handle, onDelta, signal }: TurnOptions): Turn {
  const { threadId, turnId } = handle;
  const acts = engine.as(OWNER);
  const deltas = onDelta === undefined ? undefined : engine.onDelta(threadId, onDelta);
  const interrupt = (message = "interrupted by the program"): Promise<void> =>
    acts.interrupt(turnId, { code: "turn.interrupted", message });
  // A turn that has ended meanwhile needs no interrupt.
  const onAbort = (): void => void interrupt().catch(() => undefined);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const end = (): void => {
    signal?.removeEventListener("abort", onAbort);
    deltas?.[Symbol.dispose]();
  };
  void handle.done.then(end, end);
  let result: Promise<TurnResult> | undefined;
  return {
    threadId,
    id: turnId,
    answer: (approvalId, answer) => acts.answer({ threadId, approvalId, ...asAnswer(answer) }),
    steer: (input: StartTurnInput["input"]) => acts.steer(turnId, SteerBody.parse({ input }).input),
    interrupt,
    result: () => (result ??= readResult(engine, handle)),
    [Symbol.asyncIterator]: () => eventsOf(engine, handle),
  };
}

export function asAnswer(answer: Decision | Answer): Answer {
  return typeof answer === "string" ? { decision: answer } : answer;
}

async function* eventsOf(
  engine: Engine,
  { threadId, turnId, admittedVersion, done }: TurnHandle,
): AsyncGenerator<StreamedEvent, void, void> {
  const tailing = new AbortController();
  // A turn whose end cannot be stored has no last event to wait for.
  const failed = done.then(
    () => undefined,
    (error: unknown) => {
      tailing.abort();
      return error;
    },
  );
  const { signal } = tailing;
  for await (const event of engine.journal.tail({ stream: threadId, after: admittedVersion - 1, signal })) {
    yield streamedEvent(event);
    if (event.body.type === "turn.completed" && event.body.turnId === turnId) return;
  }
  throw toHeddleError(await failed);
}

async function readResult(engine: Engine, handle: TurnHandle): Promise<TurnResult> {
  let message: string | undefined;
  for await (const { body } of eventsOf(engine, handle)) {
    if (body.type === "item.completed" && body.item.type === "agentMessage" && body.item.isPartial !== true)
      message = body.item.text;
    if (body.type !== "turn.completed" || body.turnId !== handle.turnId) continue;
    const { status, failure, usage, costUsd, durationMs } = body;
    return { threadId: handle.threadId, turnId: handle.turnId, status, message, failure, usage, costUsd, durationMs };
  }
  throw toHeddleError(new Error("the turn has no end"));
}
