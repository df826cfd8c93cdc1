/** Actions against a stall. Each returns what it did, which is stored. */
import { counted } from "@heddle/protocol";
import type { Heddle, RunningCommand } from "@heddle/agent";
import type { StallAction } from "@heddle/protocol/tasks";
import { endProcess, type ProcessIdentity } from "@heddle/tools";

export interface StalledTurn {
  readonly heddle: Pick<Heddle, "runningCommands" | "endInputs" | "endTerminals" | "as">;
  readonly threadId: string;
  readonly turnId: string;
}

export interface Named extends ProcessIdentity {
  readonly command: string;
  readonly processId: string;
}

/** Stop the turn. The action is stored first, because it decides how the task continues. */
export const STOPS: ReadonlySet<StallAction> = new Set(["interrupt", "retry"]);
/** Time to end cleanly, and then to be killed. */
const END_MS = 2000;

export async function act(turn: StalledTurn, action: StallAction, named: Named | undefined): Promise<string> {
  switch (action) {
    case "report":
      return "reported";
    case "eof":
      return endInput(turn, named);
    case "kill-child":
      return named === undefined ? endAwaited(turn) : endNamed(turn, named);
    case "interrupt":
    case "retry":
      await turn.heddle
        .as("system")
        .interrupt(turn.turnId, { code: "turn.interrupted", message: "stopped because there was no progress" });
      return action === "retry" ? "stopped the turn for a new attempt" : "stopped the turn";
  }
}

/** Only of the command that is waited for: one in the background keeps its input. */
async function endInput({ heddle, threadId }: StalledTurn, named: Named | undefined): Promise<string> {
  const chosen = awaited(heddle.runningCommands(threadId)).filter(
    ({ processId }) => named === undefined || processId === named.processId,
  );
  const ended = await Promise.all(chosen.map(({ processId }) => heddle.endInputs(threadId, processId)));
  const count = ended.reduce((sum, one) => sum + one, 0);
  return count === 0 ? "no running command has an input that could be ended" : `ended the input of ${many(count)}`;
}

async function endNamed({ heddle, threadId }: StalledTurn, named: Named): Promise<string> {
  const what = `${named.command} (pid ${named.pid})`;
  // The pid may have been reused.
  if (!heddle.runningCommands(threadId).some(({ processId }) => processId === named.processId))
    return `the command of ${what} has ended already`;
  switch (await endProcess(named, END_MS)) {
    case "ended":
      return `ended ${what}; the turn continues`;
    case "gone":
      return `${what} has ended already`;
    case "stays":
      return `${what} could not be ended; the action interrupt stops the turn`;
  }
}

/** Where processes cannot be inspected, the whole command is ended. */
async function endAwaited({ heddle, threadId }: StalledTurn): Promise<string> {
  const chosen = awaited(heddle.runningCommands(threadId));
  for (const { processId } of chosen) await heddle.endTerminals(threadId, processId);
  return chosen.length === 0 ? "the turn waits for no command" : `killed ${many(chosen.length)}; the turn continues`;
}

export function awaited(commands: readonly RunningCommand[]): readonly RunningCommand[] {
  return commands.filter(({ awaitedBy }) => awaitedBy.length > 0);
}

function many(count: number): string {
  return counted(count, "command");
}
