/**
 * Turns whose agent is a client of Heddle. It calls the tools of the thread's envelope, one at a time and through `dispatch`
 * like a model does, until it says that it is done. Policy, record and end are those of any turn; there is no other way for it
 * to a tool.
 *
 *   entered ─▶ ready ◀──▶ calling ─▶ left: completed
 *                └▶ silent for too long, interrupted, its process dead: interrupted
 */
import {
  HeddleError,
  isHeddleError,
  type Author,
  type By,
  type Envelope,
  type EventOf,
  type Failure,
  type InputPart,
  type ToolOutcomeKind,
  type TurnStatus,
} from "@heddle/protocol";
import type { OfferedTool } from "@heddle/tools";
import type { EnterThread } from "../sandboxes/thread-sandboxes.ts";
import type { Heddle, HeddleOptions, StartTurn, TurnHandle } from "../heddle.ts";
import { capabilities } from "./abilities.ts";
import { turnToolOptions } from "./embedded.ts";
import { endOf, findResult, notYours, resultsAfter, sessionOnRecord, type Results } from "./outside-results.ts";
import { converse, type Session } from "./outside-session.ts";
import { OWN_HEALTH } from "./own-health.ts";
import type { Runner, TurnIo, TurnRequest } from "./runner.ts";

/** Input reaches it with the result of its next call. */
const CLIENT = capabilities("steering");

/** A client that calls nothing for this long has forgotten its turn, and the thread is free again. */
const IDLE_MS = 30 * 60_000;

export interface OutsideCall {
  /** The client's own; the same id and arguments again get the first result. */
  readonly callId: string;
  readonly tool: string;
  readonly arguments: unknown;
  /** Of the envelope that its agent believes to be in; absent: whichever it is when the call's turn comes. */
  readonly envelopeHash?: string | undefined;
}

export interface OutsideResult {
  readonly outcome: ToolOutcomeKind;
  readonly output: readonly InputPart[];
  readonly failure?: Failure;
  readonly itemId: string;
  readonly processId?: string;
  /** A version of the thread that is not before the result. */
  readonly cursor: number;
  /** What users have added since the last call, for the agent; absent: nothing. */
  readonly added?: readonly (readonly InputPart[])[];
}

/** What the agent may call now. */
export interface Surface {
  readonly envelope: Envelope;
  readonly tools: readonly OfferedTool[];
}

/** A session as it stands. */
export interface OpenSession extends Surface {
  /** Calls that run or wait, in their order. */
  readonly calls: readonly string[];
}

export interface OutsideDelta {
  readonly callId: string;
  readonly itemId: string;
  readonly delta: string;
}

export interface SessionEnd {
  readonly status: TurnStatus;
  readonly failure?: Failure;
}

export interface EnterOutside
  extends Pick<StartTurn, "thread" | "workspace" | "settings" | "clientId">, Pick<EnterThread, "staysInSandbox"> {
  readonly onDisconnect: "keep" | "stop";
  /** At most, and when absent, what the owner allows. */
  readonly idleMs?: number | undefined;
  readonly agentName?: string | undefined;
}

export interface OutsideActs {
  /** Begins the turn. It ends when the caller leaves it, or has called nothing for its time. */
  enter(start: EnterOutside): Promise<TurnHandle & Surface & { readonly idleMs: number }>;
  /**
   * Carried out one after the other. The result of a call of a turn that has ended is that on record: `unknown` where a crash
   * cut it off. `turn.not-found`: it never began.
   */
  call(turnId: string, call: OutsideCall): Promise<OutsideResult>;
  /** Stops a call that runs or waits. */
  cancel(turnId: string, callId: string): Promise<"cancelling" | "settled" | "unknown">;
  /** undefined: it has ended. */
  look(turnId: string): Promise<OpenSession | undefined>;
  /** Results on record behind a cursor, also of a turn that has ended. */
  results(turnId: string, after: number): Promise<Results>;
  /** undefined: it has not ended. */
  endOf(turnId: string): Promise<SessionEnd | undefined>;
  /** What running calls put out, until it is disposed. */
  listen(turnId: string, listener: (delta: OutsideDelta) => void): Promise<Disposable>;
  /** Waits for calls that were made before, and for the end of the turn. False: it had ended. */
  leave(turnId: string, outcome?: unknown): Promise<boolean>;
}

export interface OutsideTurns {
  readonly runner: Runner;
  as(by: Author): OutsideActs;
}

export type OutsideStart = Pick<StartTurn, "thread" | "workspace" | "settings" | "clientId"> &
  Pick<EnterThread, "staysInSandbox"> &
  By & { readonly outside: NonNullable<EventOf<"turn.admitted">["outside"]> };

export interface OutsideOptions {
  readonly heddle: Heddle;
  readonly options: Pick<HeddleOptions, "home" | "clientToolMs" | "sessionIdleMs">;
  readonly begin: (start: OutsideStart) => Promise<TurnHandle>;
}

export function createOutsideTurns({ heddle, options, begin }: OutsideOptions): OutsideTurns {
  const { journal } = heddle;
  const open = createOpenSessions();
  const maxIdleMs = options.sessionIdleMs ?? IDLE_MS;

  async function run(turn: TurnRequest, io: TurnIo): ReturnType<Runner["run"]> {
    const { turnId } = turn;
    const opening = open.expected(turnId);
    try {
      return await converse(turn, io, {
        journal,
        tools: turnToolOptions(options, journal, { ...turn, by: "agent:outside" }),
        maxIdleMs,
        onDelta: (threadId, listener) => heddle.onDelta(threadId, listener),
        onOpen: (session) => opening.resolve(session),
        async onSilent({ message }) {
          await heddle.as("system").interrupt(turnId, { code: "turn.timeout", message });
        },
      });
    } finally {
      open.close(turnId);
    }
  }

  async function enter(start: EnterOutside & By): ReturnType<OutsideActs["enter"]> {
    const { onDisconnect, idleMs = maxIdleMs, agentName, ...asked } = start;
    if (idleMs > maxIdleMs)
      throw new HeddleError("usage.invalid", `a session may be idle for ${maxIdleMs / 1000} seconds at most`);
    const outside = { onDisconnect, idleMs, ...(agentName === undefined ? {} : { agentName }) };
    const handle = await begin({ ...asked, outside });
    const { turnId, done } = handle;
    open.runs(turnId, done);
    const isOver = done.then(({ body }) => {
      throw new HeddleError("turn.not-found", `turn ${turnId} ended: ${body.failure?.message ?? body.status}`);
    });
    isOver.catch(() => undefined);
    const session = await Promise.race([open.expected(turnId).promise, isOver]);
    if (session.by !== start.by) throw notYours(turnId);
    return { ...handle, envelope: session.surface.envelope, tools: session.surface.tools, idleMs: session.idleMs };
  }

  return {
    runner: {
      name: "outside",
      capabilities: CLIENT,
      probe: () => Promise.resolve(OWN_HEALTH),
      check: () => Promise.resolve(),
      run,
    },
    as: (by) => ({ enter: (start) => enter({ ...start, by }), ...actsOf(by, { journal, open }) }),
  };
}

type OpenSessions = ReturnType<typeof createOpenSessions>;

function createOpenSessions() {
  const sessions = new Map<string, PromiseWithResolvers<Session>>();
  /** Turns that have no terminal event yet. */
  const running = new Map<string, Promise<unknown>>();
  return {
    /** Whoever comes first, the turn or its client, makes the entry. */
    expected(turnId: string): PromiseWithResolvers<Session> {
      const known = sessions.get(turnId);
      if (known !== undefined) return known;
      const made = Promise.withResolvers<Session>();
      made.promise.catch(() => undefined);
      sessions.set(turnId, made);
      return made;
    },
    close(turnId: string): void {
      sessions.get(turnId)?.reject(ended(turnId));
      sessions.delete(turnId);
    },
    /** undefined: it has ended. */
    async find(turnId: string, by: Author): Promise<Session | undefined> {
      const session = await sessions.get(turnId)?.promise.catch(() => undefined);
      if (session !== undefined && session.by !== by) throw notYours(turnId);
      return session;
    },
    runs(turnId: string, done: Promise<unknown>): void {
      const forget = (): void => {
        if (running.get(turnId) === ending) running.delete(turnId);
      };
      const ending = done.then(forget, forget);
      running.set(turnId, ending);
    },
    ending: (turnId: string): Promise<unknown> | undefined => running.get(turnId),
  };
}

interface Known {
  readonly journal: Heddle["journal"];
  readonly open: OpenSessions;
}

function actsOf(by: Author, { journal, open }: Known): Omit<OutsideActs, "enter"> {
  const onRecord = (turnId: string) => sessionOnRecord(journal, { turnId, by });
  return {
    async call(turnId, call) {
      const session = await open.find(turnId, by);
      if (session !== undefined) return session.call(call);
      const found = await findResult(journal, await onRecord(turnId), call);
      if (found === undefined) throw ended(turnId);
      return found;
    },
    async cancel(turnId, callId) {
      const session = await open.find(turnId, by);
      if (session !== undefined) return session.cancel(callId);
      const found = await findResult(journal, await onRecord(turnId), { callId });
      return found === undefined ? "unknown" : "settled";
    },
    async look(turnId) {
      const session = await open.find(turnId, by);
      return session === undefined ? undefined : { ...session.surface, calls: session.calls };
    },
    results: async (turnId, after) => resultsAfter(journal, await onRecord(turnId), after),
    endOf: async (turnId) => endOf(journal, await onRecord(turnId)),
    async listen(turnId, listener) {
      const session = await open.find(turnId, by);
      if (session === undefined) throw ended(turnId);
      return session.listen(listener);
    },
    async leave(turnId, outcome) {
      const session = await open.find(turnId, by);
      if (session === undefined) await onRecord(turnId);
      const isLeft = await session?.leave(outcome).then(
        () => true,
        (error: unknown) => {
          // It was stopped at the same time.
          if (isHeddleError(error) && error.code === "turn.not-found") return false;
          throw error;
        },
      );
      await open.ending(turnId);
      return isLeft === true;
    },
  };
}

function ended(turnId: string): HeddleError {
  return new HeddleError("turn.not-found", `turn ${turnId} has ended; enter an envelope again`);
}
