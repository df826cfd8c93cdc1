/**
 * Commands of the user while a turn of the thread runs here: they run beside it, are items of it, and the model hears of
 * them with its next request. The turn ends after them.
 */
import type { Runner, TurnIo, TurnRequest } from "./runner.ts";
import { runUserCommand, type UserCommand } from "./runners/user-shell.ts";

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
        try {
          return await runner.run(turn, io);
        } finally {
          while (commands.size > 0) await Promise.allSettled(commands);
          running.delete(turn.threadId);
        }
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
