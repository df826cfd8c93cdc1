/**
 * Turns whose agent is neither Heddle's loop nor a program that it drives: a client that is an agent itself, and a person in the
 * agent's own interface. Each kind is loaded by the first one that comes.
 */
import { HeddleError, type By, type EventOf, type TurnSettings } from "@heddle/protocol";
import type { EnterThread } from "../sandboxes/thread-sandboxes.ts";
import type { Heddle, HeddleOptions, StartTurn, TurnHandle } from "../heddle.ts";
import type { AttachedTurns, AttachThread } from "./attached.ts";
import type { OutsideActs, OutsideTurns } from "./outside.ts";
import type { Runner } from "./runner.ts";

type Task = EventOf<"turn.admitted">["task"];

export type BeginTurn = (
  start: Pick<StartTurn, "thread" | "workspace" | "settings" | "clientId" | "input"> &
    Pick<EnterThread, "staysInSandbox"> &
    By & { readonly task: "outside" | "attached"; readonly outside?: EventOf<"turn.admitted">["outside"] },
) => Promise<TurnHandle>;

export interface TurnsByOthers {
  outside(by: By["by"]): Promise<OutsideActs>;
  attach(given: AttachThread & By): Promise<TurnHandle>;
  /** undefined: the turn is one for a runner by name. */
  runnerOf(task: Task, turnId: string): Runner | undefined;
}

export function createTurnsByOthers(heddle: Heddle, options: HeddleOptions, begin: BeginTurn): TurnsByOthers {
  let outside: OutsideTurns | undefined;
  let attached: AttachedTurns | undefined;
  return {
    async outside(by) {
      const { createOutsideTurns } = await import("./outside.ts");
      const beginOutside = (start: Omit<Parameters<BeginTurn>[0], "task" | "input">) =>
        begin({ ...start, input: [], task: "outside" });
      return (outside ??= createOutsideTurns({ heddle, options, begin: beginOutside })).as(by);
    },
    async attach(given) {
      const { createAttachedTurns } = await import("./attached.ts");
      return (attached ??= createAttachedTurns({ heddle, options, begin })).attach(given);
    },
    runnerOf(task, turnId) {
      if (task !== "outside" && task !== "attached") return undefined;
      const found = task === "outside" ? outside?.runner : attached?.runner;
      if (found !== undefined) return found;
      throw new HeddleError("internal", `the agent of turn ${turnId} runs in another process`);
    },
  };
}

/** Neither a command of the user nor such an agent asks a model here. */
export function asksModel(task: Task): boolean {
  return task !== "shell" && task !== "outside" && task !== "attached";
}

/**
 * What the sandbox of a turn is made from. A person works without one, by their own authority and never above the ceiling of the
 * thread; what the thread runs with next is not changed by that.
 */
export function sandboxSettings(task: Task, settings: TurnSettings): TurnSettings {
  if (task !== "attached") return settings;
  const { envelope: _envelope, allowedTools: _allowedTools, ...rest } = settings;
  return { ...rest, sandboxMode: "danger-full-access" };
}
