/**
 * Goes on with a turn that another process has left at a question, once it is answered (`parked.ts`). What cannot be carried
 * on any more is closed with the reason: its question is answered, and nothing would ever come of it.
 */
import type { Journal } from "@heddle/journal";
import type { TurnSettings } from "@heddle/protocol";
import { declineAt } from "./approvals.ts";
import { toFailure } from "../turns/failure.ts";
import { readResumed } from "../threads/resumed.ts";
import { grantedPlace } from "./hop.ts";
import { carryOver, isAnswered, isAtQuestion, takeParked, waitingQuestions } from "./parked.ts";
import { closeParked, isEphemeral, type Recovered } from "../recovery/recover.ts";
import type { TurnPlace, TurnRequest } from "../runners/runner.ts";
import type { Serial } from "../turns/serial.ts";
import { requireOwnFolder } from "@heddle/tools";
import { workspaceOf } from "../threads/workspace.ts";

export interface CarryOn {
  readonly journal: Journal;
  /** It has nobody to answer for it, so it carries nothing on. */
  readonly isUnattended: boolean;
  /** One at a time in a thread. */
  readonly starts: Serial;
  check(settings: TurnSettings): Promise<void>;
  enter(place: PlaceToEnter): Promise<TurnPlace>;
  run(turn: TurnRequest, epoch: number): void;
}

export interface PlaceToEnter {
  readonly threadId: string;
  readonly workspace: string;
  readonly settings: TurnSettings;
}

export interface ParkedTurns extends AsyncDisposable {
  /** For what was found, each once: an answer that nobody has acted on is acted on, a deadline is kept. */
  resume(turns: Recovered["parked"]): void;
  /** Does nothing when the turn is not parked, not answered, or taken by another process. Never rejects. */
  carryOn(threadId: string, turnId: string): Promise<void>;
  /** Another process can go on with a turn of this one: it stands at a question, and its thread is there to stay. */
  canBeLeft(threadId: string, turnId: string): Promise<boolean>;
  /** Ends what is parked in a thread. */
  end(threadId: string): Promise<void>;
}

export function createParkedTurns(engine: CarryOn): ParkedTurns {
  const { journal, isUnattended, starts } = engine;
  const carrying = new Set<Promise<void>>();
  const deadlines = new DisposableStack();
  const resumed = new Set<string>();
  let isClosing = false;

  async function attempt(threadId: string, turnId: string): Promise<void> {
    if (isUnattended || isClosing) return;
    // A store that cannot take it keeps it: the next server that opens finds the answer.
    const mine = starts.run(threadId, () => carryOn(engine, threadId, turnId)).catch(() => undefined);
    carrying.add(mine);
    await mine;
    carrying.delete(mine);
  }

  return {
    resume(turns) {
      if (isUnattended) return;
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
    },
    carryOn: attempt,
    async canBeLeft(threadId, turnId) {
      if (isUnattended || (await isEphemeral(journal, threadId))) return false;
      return isAtQuestion(journal, turnId);
    },
    async end(threadId) {
      const open = await journal.threads.lastTurn(threadId);
      if (open?.status !== "open") return;
      const message = "the approval was not answered, and another run has taken over the thread";
      const failure = { code: "turn.abandoned", message };
      const end = { status: "interrupted", failure, waitsForLease: true } as const;
      await closeParked(journal, { threadId, turnId: open.id }, end);
    },
    async [Symbol.asyncDispose]() {
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
    engine.run(await readied(engine, threadId, parked.admitted), parked.epoch);
  } catch (error) {
    const end = { status: "failed", failure: toFailure(error), isHeldHere: true } as const;
    await closeParked(journal, { threadId, turnId }, end);
  }
}

async function readied(
  engine: CarryOn,
  threadId: string,
  { turnId, settings }: { readonly turnId: string; readonly settings: TurnSettings },
): Promise<TurnRequest> {
  const { journal } = engine;
  const workspace = await workspaceOf(journal, threadId);
  requireOwnFolder(workspace);
  await engine.check(settings);
  const place = await engine.enter({ threadId, workspace, settings });
  // Read after everything else: what comes later is heard by the turn itself.
  const history = await readResumed(journal, threadId);
  const carried = carryOver(turnId, history, waitingQuestions(turnId, history) ?? new Map());
  const turn = { threadId, turnId, workspace, settings, history, place, carried };
  return { ...turn, place: await grantedPlace(turn) };
}
