/**
 * Agent programs that have outlived the process that ran them. In a sandbox they end with it; without one they are found by pid,
 * start time and boot, and what they have started by the turn, and ended, before the turn they worked for is.
 */
import type { EventOf, StoredEvent } from "@heddle/protocol";
import { endLeftProcesses, endProcess } from "@heddle/tools";
import { stateOf } from "./holder.ts";

/** A turn that is closed waits for it. */
const TERM_MS = 500;

/** Of one turn. */
export async function endLeftAgents(events: readonly StoredEvent[]): Promise<void> {
  const ended = new Set(events.flatMap(({ body }) => (body.type === "agent.ended" ? [body.pid] : [])));
  const left = events.flatMap(({ body }) =>
    body.type === "agent.started" && !ended.has(body.process.pid) ? [body] : [],
  );
  await Promise.all(left.map(({ process }) => endIfAlive(process)));
  // A program that leaves with Heddle, or was killed, may leave what it has started.
  const open = new Set(left.flatMap(({ sandboxLevel, turnId }) => (sandboxLevel === "none" ? [turnId] : [])));
  for (const turnId of open) await endLeftProcesses(turnId, TERM_MS);
}

async function endIfAlive(process: EventOf<"agent.started">["process"]): Promise<void> {
  // A pid of another boot or namespace means another process.
  if (stateOf(process) !== "alive") return;
  await endProcess({ pid: process.pid, startTicks: process.startTicks }, TERM_MS);
}

export function leftAgent({ turnId, runner, process }: EventOf<"agent.started">): EventOf<"agent.ended"> {
  return { type: "agent.ended", v: 1, turnId, runner, pid: process.pid, end: "left" };
}
