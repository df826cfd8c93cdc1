/**
 * Commands of the user: a turn of their own, or items of a turn that runs here; the model sees them with its next
 * request, and the turn ends after them.
 */
import type { ShellHandle } from "../heddle.ts";
import type { BareIo, TurnOutcome, TurnRequest } from "../runners/runner.ts";
import type { UserCommand } from "../runners/user-shell.ts";
import { admissionOf } from "./outcome.ts";
import type { Serial } from "./serial.ts";
import type { TerminalEvent } from "./terminal.ts";

const MAX_SHELL_MS = 3_600_000;

const userShell = () => import("../runners/user-shell.ts");

export function userTimeoutMs(wantedMs = MAX_SHELL_MS): number {
  return Math.min(wantedMs, MAX_SHELL_MS);
}

export type Beside = ReturnType<typeof createBeside>;

export function createBeside() {
  const running = new Map<string, { turn: TurnRequest; io: BareIo; commands: Set<Promise<void>> }>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  return {
    /** Runs a turn, and commands beside it. A turn that is a command of the user needs a runner only for added input. */
    async around(turn: TurnRequest, io: BareIo, run: () => Promise<TurnOutcome>): Promise<TurnOutcome> {
      const commands = new Set<Promise<void>>();
      running.set(turn.threadId, { turn, io, commands });
      awaited.get(turn.threadId)?.resolve();
      awaited.delete(turn.threadId);
      let outcome: TurnOutcome;
      let hasWaited = false;
      try {
        const isCommand = admissionOf(turn).task === "shell" && !hasRun(turn);
        outcome = isCommand ? await (await userShell()).runUserShell(turn, io) : await run();
      } finally {
        hasWaited = commands.size > 0;
        while (commands.size > 0) await Promise.allSettled(commands);
        running.delete(turn.threadId);
      }
      // Stopping the command stopped the turn that waited for it.
      return hasWaited && io.signal.aborted ? { kind: "interrupted", spent: outcome.spent } : outcome;
    },
    /** Resolves when a turn of the thread takes commands. */
    opened(threadId: string): Promise<void> {
      const opening = awaited.get(threadId) ?? Promise.withResolvers<void>();
      awaited.set(threadId, opening);
      return opening.promise;
    },
    /** Returns the turn it is part of; undefined: none of the thread runs here. */
    run(threadId: string, command: UserCommand): string | undefined {
      const beside = running.get(threadId);
      if (beside === undefined || beside.io.signal.aborted) return undefined;
      // The item reports a command that fails; a failed record fails the turn at its next one.
      const done = userShell()
        .then(({ runUserCommand }) => runUserCommand(beside.turn, beside.io, command))
        .catch(() => undefined)
        .finally(() => beside.commands.delete(done));
      beside.commands.add(done);
      return beside.turn.turnId;
    },
  };
}

interface Around {
  readonly starts: Serial;
  readonly beside: Beside;
  readonly running: ReadonlyMap<string, { readonly threadId: string; readonly done: Promise<TerminalEvent> }>;
  /** A turn that is the command. */
  readonly begin: (command: string) => Promise<ShellHandle>;
}

/** Beside the turn of the thread that runs here, or as one of its own. */
export async function runBesideOrAlone(
  { threadId, ...command }: UserCommand & { readonly threadId: string },
  { starts, beside, running, begin }: Around,
): Promise<ShellHandle> {
  for (;;) {
    const here = () => [...running.values()].filter((turn) => turn.threadId === threadId);
    const begun = await starts.run(threadId, async () => {
      const turnId = beside.run(threadId, command);
      const turn = turnId === undefined ? undefined : running.get(turnId);
      if (turnId !== undefined && turn !== undefined) return { turnId, done: turn.done };
      return here().length > 0 ? undefined : begin(command.command);
    });
    if (begun !== undefined) return begun;
    // A turn of this process takes no command while it begins or ends; both are soon over.
    await Promise.race([beside.opened(threadId), ...here().map(({ done }) => done.catch(() => undefined))]);
  }
}

/** A command runs once, however often its turn is carried out. */
function hasRun({ history, turnId }: TurnRequest): boolean {
  return history.some(({ body }) => body.type === "tool.intended" && body.turnId === turnId);
}
