/**
 * Standard input beside a prompt that was given. A pipe is read to its end, however late its producer begins. It is given
 * up only when whoever could write is known and is no producer: the program that started this run and kept the pipe, or
 * nobody at all. Where that cannot be known the run is refused in the end, so that input is neither lost nor waited for
 * without limit. No time decides alone, and before anything is given up the pipe is looked at once more.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { clockMs, HeddleError, visibleText } from "@heddle/protocol";
import { gather, type Gathering, type InputStream } from "./gather.ts";
import type { PipeWriters } from "./pipe-writers.ts";

export interface Patience {
  /** For the program that started this run: it may pass on what another one produces. */
  readonly ancestorMs: number;
  /** For what has begun and does not end, and for writers that cannot be seen. */
  readonly silenceMs: number;
  /** How often the possible writers are looked up again. */
  readonly lookEveryMs: number;
}

const PATIENCE: Patience = { ancestorMs: 5_000, silenceMs: 60_000, lookEveryMs: 1_000 };

export interface BesideOptions {
  readonly stdin: InputStream;
  readonly signal: AbortSignal;
  readonly notify: (text: string) => void;
  /** Everything else is ready: only now is anything waited for. */
  readonly isAsked: Promise<void>;
  /** Asked only while nothing comes. */
  readonly writers: () => Promise<PipeWriters | { readonly kind: "socket" }>;
  readonly patience?: Patience;
}

export interface InputBeside {
  readonly bytes: Buffer;
  /** Why nothing was read, although it could still have come. */
  readonly abandoned?: string;
}

type Writers = Awaited<ReturnType<BesideOptions["writers"]>>;

export async function readBeside(options: BesideOptions): Promise<InputBeside> {
  const { stdin, signal, notify, patience = PATIENCE } = options;
  let isNotified = false;
  const tell = (): void => {
    if (!isNotified) notify("Reading additional input from stdin...");
    isNotified = true;
  };
  const gathering = gather(stdin, signal, tell);
  await Promise.race([options.isAsked, over(gathering)]);
  const askedAt = clockMs();
  while (!gathering.isOver) {
    const writers = await options.writers();
    // After the look-up: whoever wrote and ended before it has left its bytes in the pipe.
    await lookAtPipe();
    if (gathering.isOver) break;
    const silentMs = clockMs() - Math.max(askedAt, gathering.lastByteAt);
    const leftMs = patienceFor(writers, gathering.sizeBytes, patience) - silentMs;
    if (leftMs <= 0) return giveUp(gathering, writers, silentMs);
    await waitForMore(gathering, Math.min(leftMs, patience.lookEveryMs));
    if (!gathering.isOver && writers.kind !== "ancestors" && writers.kind !== "socket") tell();
  }
  return { bytes: await gathering.whole };
}

function patienceFor({ kind }: Writers, sizeBytes: number, patience: Patience): number {
  switch (kind) {
    case "others":
      return Number.POSITIVE_INFINITY;
    case "unknown":
      return patience.silenceMs;
    case "nobody":
      return sizeBytes > 0 ? patience.silenceMs : 0;
    case "ancestors":
    case "socket":
      return sizeBytes > 0 ? patience.silenceMs : patience.ancestorMs;
  }
}

/** Only what has said nothing is gone on without; of what has begun, no part is taken for the whole. */
function giveUp(gathering: Gathering, writers: Writers, silentMs: number): InputBeside {
  gathering.leave();
  const seconds = Math.round(silentMs / 1000);
  const wayOut = "close it (< /dev/null), or wait for its end with `PROMPT -`";
  if (gathering.sizeBytes > 0 || writers.kind === "unknown") {
    const came = gathering.sizeBytes === 0 ? "nothing" : `${gathering.sizeBytes} bytes`;
    throw new HeddleError(
      "prompt.unfinished",
      `standard input does not end: ${came} came, then ${seconds} s of silence, and it is still open; ${wayOut}`,
    );
  }
  return {
    bytes: Buffer.alloc(0),
    abandoned: `${whyAbandoned(writers, seconds)}; the run continues without it: ${wayOut}`,
  };
}

function whyAbandoned(writers: Writers, seconds: number): string {
  switch (writers.kind) {
    case "ancestors":
      return `standard input is held open by ${visibleText(writers.name)} (process ${writers.pid}), which started this run and wrote nothing for ${seconds} s`;
    case "socket":
      return `standard input is a socket on which nothing came for ${seconds} s`;
    case "nobody":
    case "others":
    case "unknown":
      return "standard input is a pipe that no other process has open for writing";
  }
}

function over({ whole }: Gathering): Promise<void> {
  return whole.then(
    () => undefined,
    () => undefined,
  );
}

/** The event loop asks the kernel between two turns of it, so that what is there has been seen afterwards. */
async function lookAtPipe(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

async function waitForMore(gathering: Gathering, ms: number): Promise<void> {
  const waiting = new AbortController();
  const timer = sleep(ms, undefined, { signal: waiting.signal }).catch(() => undefined);
  await Promise.race([timer, over(gathering)]);
  waiting.abort();
}
