/** What can be done about a stall. Each says what it did, in words that are stored. */
import type { Heddle } from "@heddle/agent";
import type { StallAction } from "@heddle/protocol/tasks";

export interface StalledTurn {
  readonly heddle: Pick<Heddle, "endInputs" | "endTerminals" | "interrupt">;
  readonly threadId: string;
  readonly turnId: string;
}

/** Stops the turn; what is stored of it says how the task goes on, so it is stored first. */
export const STOPS: ReadonlySet<StallAction> = new Set(["interrupt", "retry"]);

export async function act({ heddle, threadId, turnId }: StalledTurn, action: StallAction): Promise<string> {
  switch (action) {
    case "report":
      return "reported";
    case "eof": {
      const ended = await heddle.endInputs(threadId);
      return ended === 0 ? "no running command has an input that could be ended" : `ended the input of ${many(ended)}`;
    }
    case "kill-child": {
      const killed = await heddle.endTerminals(threadId);
      return killed === 0 ? "no command was running" : `killed ${many(killed)}; the turn goes on`;
    }
    case "interrupt":
    case "retry":
      await heddle.interrupt(turnId, { code: "turn.interrupted", message: "stopped because nothing moved" });
      return action === "retry" ? "stopped the turn for a new attempt" : "stopped the turn";
  }
}

function many(count: number): string {
  return count === 1 ? "1 command" : `${count} commands`;
}
