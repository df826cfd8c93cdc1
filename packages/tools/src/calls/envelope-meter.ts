/**
 * What was done in an envelope since it was entered, against its limits. A call that would go beyond one is refused; what
 * already runs is not stopped. Bytes are those that file tools write: what commands write is not counted.
 */
import { HeddleError, type Envelope } from "@heddle/protocol";

export interface SinceEntered {
  readonly calls: number;
  readonly bytesWritten: number;
  /** Milliseconds since 1970. */
  readonly enteredAt: number;
}

export interface EnvelopeMeter {
  /** Throws `envelope.limit-reached` when no further call may begin. */
  check(): void;
  /** As `check`, and counts one. */
  begin(): void;
  /** Before a file is written: throws when that would be too much, and counts it. */
  write(bytes: number): void;
}

export interface MeterOptions {
  readonly now?: () => number;
  /** Of a child thread: that of its parent now. What is done here counts there too, and its limits hold here. */
  readonly outer?: (() => EnvelopeMeter | undefined) | undefined;
}

/** One for a turn: `of` gives that of the envelope in force, which counts from zero where another one was entered. */
export function createEnvelopeMeters(since: SinceEntered, { now = Date.now, outer }: MeterOptions = {}) {
  let last: { readonly id: string; readonly meter: EnvelopeMeter } | undefined;
  return {
    of(envelope: Envelope): EnvelopeMeter {
      if (last?.id === envelope.id) return last.meter;
      const from = last === undefined ? since : { calls: 0, bytesWritten: 0, enteredAt: now() };
      last = { id: envelope.id, meter: meterOf(envelope, from, { now, outer }) };
      return last.meter;
    },
  };
}

export type EnvelopeMeters = ReturnType<typeof createEnvelopeMeters>;

function meterOf(
  { id, limits = {} }: Envelope,
  since: SinceEntered,
  { now, outer }: MeterOptions & { readonly now: () => number },
): EnvelopeMeter {
  let { calls, bytesWritten } = since;
  const { calls: maxCalls, bytesWritten: maxBytes, wallMs } = limits;
  const refuse = (text: string): never => {
    const message = `the envelope "${id}" allows ${text}; the user can put the thread into another envelope`;
    throw new HeddleError("envelope.limit-reached", message);
  };
  function checkOwn(): void {
    if (maxCalls !== undefined && calls >= maxCalls) refuse(`${maxCalls} calls`);
    if (wallMs !== undefined && now() - since.enteredAt >= wallMs) refuse(`${wallMs} ms from entering it on`);
  }
  return {
    check() {
      checkOwn();
      outer?.()?.check();
    },
    begin() {
      checkOwn();
      // What is refused there counts nowhere.
      outer?.()?.begin();
      calls += 1;
    },
    write(bytes) {
      if (maxBytes !== undefined && bytesWritten + bytes > maxBytes) refuse(`${maxBytes} bytes to be written`);
      outer?.()?.write(bytes);
      bytesWritten += bytes;
    },
  };
}
