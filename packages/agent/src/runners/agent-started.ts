import type { Envelope, EventOf } from "@heddle/protocol";
import { readProcStat } from "@heddle/tools";
import { thisHolder } from "../recovery/holder.ts";
import type { TurnRequest } from "./runner.ts";

export interface StartedAgent {
  readonly turn: TurnRequest;
  readonly runner: string;
  readonly argv: readonly string[];
  readonly pid: number;
  /** What its process is held to. */
  readonly envelope: Pick<Envelope, "network" | "writeRoots">;
}

/** The process of an agent is on record before it is told anything. */
export function agentStarted({ turn, runner, argv, pid, envelope }: StartedAgent): EventOf<"agent.started"> {
  return {
    type: "agent.started",
    v: 1,
    turnId: turn.turnId,
    runner,
    command: [...argv],
    process: { ...thisHolder(), pid, startTicks: readProcStat(pid)?.startTicks ?? "" },
    sandboxLevel: turn.sandboxContext.sandbox.level,
    network: envelope.network,
    writeRoots: [...envelope.writeRoots],
  };
}
