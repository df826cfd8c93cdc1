/**
 * Commands of the user while a turn of the thread runs here: they run beside it, are items of it, and the model hears of
 * them with its next request. The turn ends after them.
 */
import type { Runner, TurnIo, TurnOutcome, TurnRequest } from "../runners/runner.ts";
import { runUserCommand, type UserCommand } from "../runners/user-shell.ts";

export interface Beside {
  /** Carries out turns as before, and lets commands in while it does. */
  readonly runner: Runner;
  /** The turn it is part of; undefined: none of the thread runs here. Its end is in the journal. */
  run(threadId: string, command: UserCommand): string | undefined;
}

interface Running {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly commands: Set<Promise<void>>;
}

export function besideTurns(runner: Runner): Beside {
  const running = new Map<string, Running>();
  return {
    runner: {
      ...runner,
      async run(turn, io) {
        const commands = new Set<Promise<void>>();
        running.set(turn.threadId, { turn, io, commands });
        let outcome: TurnOutcome;
        let hasWaited = false;
        try {
          outcome = await runner.run(turn, io);
        } finally {
          hasWaited = commands.size > 0;
          while (commands.size > 0) await Promise.allSettled(commands);
          running.delete(turn.threadId);
        }
        // Whoever stopped the command stopped the turn that waited for it.
        return hasWaited && io.signal.aborted ? { kind: "interrupted", spent: outcome.spent } : outcome;
      },
    },
    run(threadId, command) {
      const beside = running.get(threadId);
      if (beside === undefined || beside.io.signal.aborted) return undefined;
      // A command that fails says so in its item; a record that cannot be written fails the turn at its next one.
      const done = runUserCommand(beside.turn, beside.io, command)
        .catch(() => undefined)
        .finally(() => beside.commands.delete(done));
      beside.commands.add(done);
      return beside.turn.turnId;
    },
  };
}
