/**
 * Follows a turn from its admission to its terminal event: stored events through a cursor, deltas as they come, both to a
 * printer. When something asks to stop, the turn is interrupted, and followed to its end all the same.
 */
import type { Heddle, InterruptReason, TerminalEvent, TurnHandle } from "@heddle/agent";
import { isHeddleError, OWNER, shownAnswer, toHeddleError, type EventOf, type SandboxLevel } from "@heddle/protocol";
import type { Printer } from "./print/output.ts";
import type { Stop } from "./stop.ts";

export interface Followed {
  readonly terminal: TerminalEvent;
  /** The last thing the agent said in full. */
  readonly message: string | undefined;
  /** The sandbox back-end; undefined when the turn ended before it started. */
  readonly sandboxLevel: SandboxLevel | undefined;
}

export async function followTurn(
  heddle: Heddle,
  handle: TurnHandle,
  { printer, stop }: { readonly printer: Printer; readonly stop: Stop },
): Promise<Followed> {
  const { threadId, turnId, admittedVersion } = handle;
  using _deltas = heddle.onDelta(threadId, (delta) => printer.delta(delta));
  const tailing = new AbortController();
  const interrupting = interruptOnStop(heddle, turnId, { printer, stop });
  // A turn whose end cannot be stored has no terminal event to wait for.
  const failed = handle.done.then(
    () => undefined,
    () => tailing.abort(),
  );
  let admitted: EventOf<"turn.admitted"> | undefined;
  let message: string | undefined;
  let sandboxLevel: SandboxLevel | undefined;
  for await (const event of heddle.journal.tail({
    stream: threadId,
    after: admittedVersion - 1,
    signal: tailing.signal,
  })) {
    await printer.event(event);
    const { body } = event;
    if (body.type === "item.completed" && body.item.type === "agentMessage" && body.item.isPartial !== true) {
      message = shownAnswer(admitted, body.item.text);
    }
    if (body.type === "turn.admitted") admitted = body;
    if (body.type === "turn.started") sandboxLevel = body.sandboxLevel;
    if (body.type === "turn.completed" && body.turnId === turnId) break;
  }
  await failed;
  await interrupting.settled();
  return { terminal: await handle.done, message, sandboxLevel };
}

/** Asks once; a turn that has just ended by itself needs no asking. */
function interruptOnStop(
  heddle: Heddle,
  turnId: string,
  { printer, stop }: { readonly printer: Printer; readonly stop: Stop },
): { settled(): Promise<void> } {
  let asked: Promise<void> = Promise.resolve();
  const ask = (): void => {
    const reason = interruptReason(stop.signal.reason);
    const acts = heddle.as(reason.code === "turn.timeout" ? "policy:timeout" : OWNER);
    asked = acts.interrupt(turnId, reason).catch(async (error: unknown) => {
      if (isHeddleError(error) && error.code === "turn.not-found") return;
      // The turn is stopped all the same; only its record lacks the reason.
      await printer.notice(`the request to stop could not be recorded: ${toHeddleError(error).message}`);
    });
  };
  if (stop.signal.aborted) ask();
  else stop.signal.addEventListener("abort", ask, { once: true });
  return { settled: () => asked };
}

function interruptReason(reason: unknown): InterruptReason {
  const { code, message } = toHeddleError(reason, "turn.interrupted");
  return { code: code === "turn.timeout" ? code : "turn.interrupted", message };
}
