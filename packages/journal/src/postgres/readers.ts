/** A few connections for reading: a question goes to the one with the least under way; one that is gone is replaced. */
import { setTimeout as delay } from "node:timers/promises";
import { clockMs, HeddleError } from "@heddle/protocol";
import type { Asking } from "../sql/ask.ts";
import type { PostgresAddress } from "./address.ts";
import { connect, type Link } from "./driver.ts";
import { faultOf } from "./store-errors.ts";

const MAX_LINKS = 3;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;

export interface Readers {
  /** Waits for a server that is away, as long as that is worth while. */
  ask<T>(asking: () => Asking<T>): Promise<T>;
  close(): Promise<void>;
}

interface Reader {
  link: Promise<Link>;
  busy: number;
}

export function createReaders(address: PostgresAddress, patienceMs: number): Readers {
  const readers: Reader[] = [];
  let isClosed = false;

  function pick(): Reader {
    const idle = readers.find(({ busy }) => busy === 0);
    if (idle !== undefined) return idle;
    if (readers.length < MAX_LINKS) return open();
    return readers.reduce((best, one) => (one.busy < best.busy ? one : best));
  }

  function open(): Reader {
    const reader: Reader = { link: connect({ address, purpose: "read" }), busy: 0 };
    const forget = (): void => {
      const index = readers.indexOf(reader);
      if (index >= 0) readers.splice(index, 1);
    };
    // Whoever waits for it is told by it.
    reader.link.then(({ gone }) => gone.then(forget), forget);
    readers.push(reader);
    return reader;
  }

  async function once<T>(asking: Asking<T>): Promise<T> {
    const reader = pick();
    reader.busy += 1;
    try {
      const link = await reader.link;
      let step = asking.next();
      while (step.done !== true) step = asking.next((await link.send(step.value)).rows);
      return step.value;
    } finally {
      reader.busy -= 1;
    }
  }

  return {
    ask: (asking) =>
      whileAway(patienceMs, () => {
        if (isClosed) throw new HeddleError("store.failed", "the journal is closed");
        return once(asking());
      }),
    async close() {
      isClosed = true;
      const links = await Promise.allSettled(readers.map(({ link }) => link));
      await Promise.all(links.map(async (result) => result.status === "fulfilled" && (await result.value.close())));
    },
  };
}

/** Repeats the work while the server is away, restarts or has no connection left, with growing pauses up to a deadline. */
export async function whileAway<T>(patienceMs: number, work: () => Promise<T>): Promise<T> {
  const deadline = clockMs() + patienceMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
    try {
      return await work();
    } catch (error) {
      if (!mayReturn(error) || clockMs() + pauseMs > deadline) throw error;
      await delay(pauseMs);
    }
  }
}

const LOCK_NOT_AVAILABLE = "55P03";

function mayReturn(error: unknown): boolean {
  const fault = faultOf(error);
  if (fault !== "busy") return fault === "away";
  // It has waited for the lock already.
  return !(error instanceof Error && "code" in error && error.code === LOCK_NOT_AVAILABLE);
}
