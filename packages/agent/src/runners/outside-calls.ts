/**
 * The calls of an outside agent in the order in which they came, one at a time. A call id stands for one call: repeated, it
 * gets the first result, which is read again from the record, so that nothing of the results stays in memory. A long silence
 * between calls is told once.
 *
 *   waiting ─▶ running ─▶ settled        the same id again: waits for the result, or reads it
 *      └─ cancelled ─┴──▶ settled
 */
import { createHash } from "node:crypto";
import { canonical, HeddleError } from "@heddle/protocol";
import { createSerial } from "../turns/serial.ts";
import type { OutsideCall, OutsideResult } from "./outside.ts";

/** Calls that wait for the one that runs, that one included. */
const MAX_WAITING = 64;
/** Of the arguments of all of them: more than any file that an agent writes by a call. */
const MAX_WAITING_CHARS = 32 * 1024 * 1024;
/** Calls of one turn: the id of each is known to its end, so that none is ever run twice. */
const MAX_CALLS = 10_000;

export interface Between {
  readonly after: number;
  readonly upTo: number;
}

export interface Carrying {
  readonly carryOut: (call: OutsideCall, signal: AbortSignal) => Promise<Omit<OutsideResult, "cursor">>;
  /** The result on record. */
  readonly reread: (callId: string, between: Between) => Promise<OutsideResult>;
  /** Of the thread. */
  readonly version: () => Promise<number>;
}

interface Silence {
  readonly idleMs: number;
  readonly onSilent: (error: HeddleError) => void;
}

export interface OutsideCalls extends AsyncDisposable {
  /** Ids of calls that have no result yet, in their order. */
  readonly open: readonly string[];
  order(call: OutsideCall): Promise<OutsideResult>;
  cancel(callId: string): "cancelling" | "settled" | "unknown";
  /** Behind all calls; later ones are refused, unless it fails. */
  last(work: () => Promise<void>): Promise<void>;
}

interface Known {
  /** Hash of what was called. */
  readonly asked: string;
  /** Stops it; absent: it has its result. */
  abort?: AbortController | undefined;
  result: () => Promise<OutsideResult>;
}

export function createOutsideCalls(carrying: Carrying, { idleMs, onSilent }: Silence): OutsideCalls {
  const queue = createQueue(carrying, () => rest());
  let leaving = 0;
  let isOver = false;
  let silence: NodeJS.Timeout | undefined;

  function rest(): void {
    clearTimeout(silence);
    if (queue.open.size > 0 || leaving > 0 || isOver) return;
    const message = `the agent called nothing for ${Math.round(idleMs / 1000)} seconds`;
    silence = setTimeout(() => onSilent(new HeddleError("turn.timeout", message)), idleMs).unref();
  }

  rest();
  return {
    get open() {
      return [...queue.open.keys()];
    },
    async order(call) {
      const text = canonical([call.tool, call.arguments]);
      const asked = createHash("sha256").update(text).digest("base64");
      const before = queue.known.get(call.callId);
      if (before !== undefined && before.asked !== asked)
        throw new HeddleError("store.id-conflict", `the call id ${call.callId} was used before with other arguments`);
      if (before !== undefined) return before.result();
      if (leaving > 0 || isOver)
        throw new HeddleError("turn.not-found", "the turn is being left; enter an envelope again");
      return queue.begin(call, { asked, size: text.length }).result();
    },
    cancel(callId) {
      const entry = queue.known.get(callId);
      if (entry === undefined) return "unknown";
      if (entry.abort === undefined) return "settled";
      entry.abort.abort(new HeddleError("tool.cancelled", "the call was cancelled by its client"));
      return "cancelling";
    },
    async last(work) {
      leaving += 1;
      rest();
      try {
        await queue.serial.run("", work);
        isOver = true;
      } finally {
        leaving -= 1;
        rest();
      }
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(silence);
      await queue.serial.run("", () => Promise.resolve());
    },
  };
}

/** `onChange`: a call has come, or has ended. */
function createQueue({ carryOut, reread, version }: Carrying, onChange: () => void) {
  const known = new Map<string, Known>();
  /** Calls without a result, with the size of their arguments. */
  const open = new Map<string, number>();
  const serial = createSerial();
  let chars = 0;

  function requireRoom(size: number): void {
    if (open.size >= MAX_WAITING || (open.size > 0 && chars + size > MAX_WAITING_CHARS))
      throw new HeddleError("door.overloaded", `${open.size} calls wait already; wait for their answers`);
    if (known.size >= MAX_CALLS)
      throw new HeddleError("limit.reached", `a turn has at most ${MAX_CALLS} calls; leave it and enter again`);
  }

  async function run(call: OutsideCall, entry: Known, signal: AbortSignal): Promise<OutsideResult> {
    signal.throwIfAborted();
    const after = await version();
    const { added, ...result } = await carryOut(call, signal);
    const between = { after, upTo: await version() };
    const more = added === undefined ? {} : { added };
    entry.result = async () => ({ ...(await reread(call.callId, between)), ...more });
    return { ...result, ...more, cursor: between.upTo };
  }

  return {
    known,
    open,
    serial,
    begin(call: OutsideCall, { asked, size }: { readonly asked: string; readonly size: number }): Known {
      requireRoom(size);
      const { callId } = call;
      const abort = new AbortController();
      open.set(callId, size);
      chars += size;
      onChange();
      const entry: Known = { asked, abort, result: () => running };
      const running = serial
        .run("", () => run(call, entry, abort.signal))
        .finally(() => {
          open.delete(callId);
          chars -= size;
          entry.abort = undefined;
          onChange();
        });
      running.catch(() => undefined);
      known.set(callId, entry);
      return entry;
    },
  };
}
