/**
 * Continues a turn that another process left waiting for an answer, once it is answered (`parked.ts`); closes it with
 * the reason where that is not possible. For attended engines: an unattended run has nobody to answer.
 */
import type { Journal } from "@heddle/journal";
import type { EventOf, TurnSettings } from "@heddle/protocol";
import { requireOwnFolder } from "@heddle/tools";
import { canWait, closeTurn, watchHosts, type Recovered } from "../recovery/recover.ts";
import type { TurnSandbox, TurnRequest } from "../runners/runner.ts";
import type { EnterThread } from "../sandboxes/thread-sandboxes.ts";
import { withHop } from "../threads/past.ts";
import { readResumed } from "../threads/resumed.ts";
import { requireSound } from "../threads/threads.ts";
import { toFailure } from "../turns/outcome.ts";
import type { Serial } from "../turns/serial.ts";
import { declineAt } from "./approvals.ts";
import { grantedSandbox } from "./hop.ts";
import { carryOver, isAnswered, isAtQuestion, takeParked, waitingQuestions } from "./parked.ts";

export interface CarryOn {
  readonly journal: Journal;
  readonly starts: Serial;
  readonly check: (settings: TurnSettings) => Promise<void>;
  readonly enter: (thread: EnterThread) => Promise<TurnSandbox>;
  readonly run: (turn: TurnRequest, epoch: number) => void;
}

export interface ParkedTurns extends AsyncDisposable {
  /** Does nothing when the turn is not parked, not answered, or taken by another process. Never rejects. */
  carryOn(threadId: string, turnId: string): Promise<void>;
  /** Another process can continue a turn of this one: it waits for an answer, and its thread can wait. */
  canBeLeft(threadId: string, turnId: string): Promise<boolean>;
}

/** `found`: parked turns of dead processes. Each is resumed once: when it is answered, or at its deadline. */
export function createParkedTurns(engine: CarryOn, found: Recovered["parked"]): ParkedTurns {
  const { journal, starts } = engine;
  const carrying = new Set<Promise<void>>();
  const deadlines = new DisposableStack();
  const resumed = new Set<string>();
  let isClosing = false;

  async function attempt(threadId: string, turnId: string): Promise<void> {
    if (isClosing) return;
    // When the store cannot take it now, the next server that opens finds the answer.
    const mine = starts.run(threadId, () => carryOn(engine, threadId, turnId)).catch(() => undefined);
    carrying.add(mine);
    await mine;
    carrying.delete(mine);
  }

  function resume(turns: Recovered["parked"]): void {
    for (const { threadId, turnId, questions } of turns) {
      if (resumed.has(turnId)) continue;
      resumed.add(turnId);
      if (isAnswered(questions)) attempt(threadId, turnId).catch(() => undefined);
      else
        for (const { approvalId, answerBy } of questions.values()) {
          const due = { threadId, turnId, approvalId, answerBy };
          deadlines.use(declineAt(journal, due, () => attempt(threadId, turnId)));
        }
    }
  }

  resume(found);
  const hosts = watchHosts(journal, resume);
  return {
    carryOn: attempt,
    canBeLeft: async (threadId, turnId) => (await canWait(journal, threadId)) && (await isAtQuestion(journal, turnId)),
    async [Symbol.asyncDispose]() {
      await hosts[Symbol.asyncDispose]();
      isClosing = true;
      deadlines.dispose();
      await Promise.allSettled(carrying);
    },
  };
}

async function carryOn(engine: CarryOn, threadId: string, turnId: string): Promise<void> {
  const { journal } = engine;
  const parked = await takeParked(journal, threadId, turnId);
  if (parked === undefined) return;
  try {
    engine.run(await prepareTurn(engine, threadId, parked.admitted), parked.epoch);
  } catch (error) {
    await closeTurn(journal, turnId, { status: "failed", failure: toFailure(error), isHeldHere: true });
  }
}

async function prepareTurn(
  { journal, check, enter }: CarryOn,
  threadId: string,
  { turnId, settings, bound }: Pick<EventOf<"turn.admitted">, "turnId" | "settings" | "bound">,
): Promise<TurnRequest> {
  const { workspace, origin } = await requireSound(journal, threadId);
  requireOwnFolder(workspace);
  await check(settings);
  // What messages may cause is what it was when they started the turn.
  const message = bound && ({ kind: "sender", envelope: bound } as const);
  const now = await withHop(journal, threadId, settings);
  const sandboxContext = await enter({ threadId, workspace, settings: now, message });
  // Read after everything else: the turn itself receives what is stored later.
  const history = await readResumed(journal, threadId);
  const carried = carryOver(turnId, history, waitingQuestions(turnId, history) ?? new Map());
  const turn = { threadId, turnId, workspace, origin, settings, history, sandboxContext, carried };
  return { ...turn, sandboxContext: await grantedSandbox(turn) };
}
