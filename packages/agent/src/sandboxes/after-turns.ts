/**
 * Watches protected paths while commands and servers of a thread are still running after its turn, until the last has
 * ended. Violations are recorded as in a turn. Costs at most a twentieth of one core, over all threads.
 */
import { setTimeout } from "node:timers/promises";
import type { Journal } from "@heddle/journal";
import { clockMs } from "@heddle/protocol";
import type { ProtectedPathViolation } from "@heddle/tools";
import type { OpenSandboxes } from "./open-sandboxes.ts";

export interface AfterTurnsOptions {
  readonly sandboxes: Pick<OpenSandboxes, "living" | "sweep">;
  readonly record: ViolationRecorder;
  readonly everyMs: number | undefined;
}

export type ViolationRecorder = (threadId: string, violations: readonly ProtectedPathViolation[]) => Promise<void>;

const EVERY_MS = 2000;
/** Pause after a look, in multiples of its duration. */
const REST = 20;

export function createAfterTurns({ sandboxes, record, everyMs = EVERY_MS }: AfterTurnsOptions) {
  const followed = new Map<string, Promise<void>>();
  const closing = new AbortController();

  async function look(threadId: string): Promise<number> {
    const startedAt = clockMs();
    // A failed look or record is tried again with the next one, and once more when the sandbox closes.
    const violations = await sandboxes.sweep(threadId).catch(() => []);
    if (violations.length > 0) await record(threadId, violations).catch(() => undefined);
    return clockMs() - startedAt;
  }

  async function watch(threadId: string): Promise<void> {
    let costMs = 0;
    for (;;) {
      const living = sandboxes.living(threadId);
      if (living === undefined || closing.signal.aborted) return;
      const isAlone = living.ends.length === 0 && !living.hasServers;
      if (!isAlone) await pause(living.ends, Math.max(everyMs, REST * costMs * followed.size));
      costMs = await look(threadId);
      if (isAlone) return;
    }
  }

  async function pause(ends: readonly Promise<unknown>[], ms: number): Promise<void> {
    const woken = new AbortController();
    const signal = AbortSignal.any([closing.signal, woken.signal]);
    const rested = setTimeout(ms, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([rested, ...ends.map((end) => end.catch(() => undefined))]);
    woken.abort();
  }

  return {
    follow(threadId: string): void {
      const living = sandboxes.living(threadId);
      if (followed.has(threadId) || closing.signal.aborted || living === undefined) return;
      if (living.ends.length === 0 && !living.hasServers) return;
      const watching = watch(threadId).finally(() => followed.delete(threadId));
      followed.set(threadId, watching);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      closing.abort();
      await Promise.all(followed.values());
    },
  };
}

/** Outside a turn they belong to the last one, whose commands kept running. */
export async function recordViolations(
  journal: Journal,
  threadId: string,
  violations: readonly ProtectedPathViolation[],
  during?: string,
): Promise<void> {
  if (violations.length === 0) return;
  const turnId = during ?? (await journal.threads.lastTurn(threadId))?.id;
  if (turnId === undefined) return;
  await journal.append({
    stream: threadId,
    author: "system",
    events: violations.map((violation) => ({ type: "path.violated", v: 1, turnId, ...violation })),
  });
}
