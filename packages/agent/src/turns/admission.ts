/**
 * Admission: from the moment it resolves, the input is durable and will be run or reported as not run. The same client id
 * with the same input is the same turn; with other input it is a conflict. One turn at a time in a thread.
 */
import {
  canonical,
  HeddleError,
  isHeddleError,
  newTurnId,
  type By,
  type EventBody,
  type EventOf,
  type InputPart,
  type StoredEvent,
  type TurnSettings,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { thisHolder } from "../recovery/holder.ts";
import { readInherited, withoutReverted } from "../threads/history.ts";
import { readStream } from "../threads/stored-events.ts";

export interface AdmitOptions extends By {
  readonly threadId: string;
  /** The thread begins with this turn. */
  readonly newThread?: Omit<EventOf<"thread.created">, "type" | "v">;
  /** The thread works in this folder from here on. */
  readonly movedTo?: string;
  readonly input: readonly InputPart[];
  readonly settings: TurnSettings;
  readonly once?: readonly string[] | undefined;
  readonly clientId?: string;
  /** Of input that waited: its turn begins under the id it waited with. */
  readonly turnId?: string;
  readonly task?: "compact" | "review" | "shell" | "goal";
  /** What the task is about. */
  readonly subject?: string;
  readonly timeoutMs?: number;
}

/** This client id was admitted before; that turn stands. */
export interface Repeat {
  readonly kind: "repeat";
  readonly turnId: string;
  readonly admittedVersion: number;
}

export type Admitted =
  | Repeat
  | {
      readonly kind: "new";
      readonly turnId: string;
      /** With what the thread was forked from; the last event is the admission. */
      readonly history: readonly StoredEvent[];
    };

const MAX_TRIES = 50;

/** What admission would say now, before anything is done for the turn: a repeat, a refusal (thrown), or nothing against it. */
export async function foresee(journal: Journal, options: AdmitOptions): Promise<Repeat | undefined> {
  const own = options.newThread === undefined ? await readStream(journal, options.threadId) : [];
  const repeat = findRepeat(own, options);
  if (repeat !== undefined) return repeat;
  refuseWhileBusy(own, options.threadId);
  const refusal = await journal.refusal();
  if (refusal !== undefined) throw refusal;
  return undefined;
}

export async function admit(journal: Journal, options: AdmitOptions): Promise<Admitted> {
  const { threadId, newThread } = options;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const own = newThread === undefined ? await readStream(journal, threadId) : [];
    // Client ids and open turns are the thread's own, also in a fork; what it has seen is not.
    const repeat = findRepeat(own, options);
    if (repeat !== undefined) return repeat;
    refuseWhileBusy(own, threadId);
    const inherited = await readInherited(journal, (newThread ?? createdIn(own))?.forkedFrom);
    refuseGone(own, options.turnId);
    const turnId = options.turnId ?? newTurnId();
    failpoint("turn.before-admit");
    try {
      const { events } = await journal.append({
        stream: threadId,
        author: options.by,
        events: [...created(newThread), ...moved(options), admittedEvent(turnId, options)],
        expectedVersion: own.at(-1)?.version ?? 0,
      });
      failpoint("turn.after-admit");
      return { kind: "new", turnId, history: withoutReverted([...inherited, ...own, ...events]) };
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
  throw new HeddleError("store.busy", `thread ${threadId} is written without pause; try again`);
}

function created(newThread: AdmitOptions["newThread"]): EventBody[] {
  return newThread === undefined ? [] : [{ type: "thread.created", v: 1, ...newThread }];
}

function moved({ movedTo }: AdmitOptions): EventBody[] {
  return movedTo === undefined ? [] : [{ type: "thread.moved", v: 1, workspace: movedTo }];
}

function createdIn(own: readonly StoredEvent[]): EventOf<"thread.created"> | undefined {
  const first = own[0]?.body;
  return first?.type === "thread.created" ? first : undefined;
}

function admittedEvent(turnId: string, options: AdmitOptions): EventOf<"turn.admitted"> {
  const { input, settings, once = [], clientId, task, subject, timeoutMs } = options;
  return {
    type: "turn.admitted",
    v: 1,
    turnId,
    input: [...input],
    settings,
    ...(once.length === 0 ? {} : { once: [...once] }),
    holder: thisHolder(),
    ...(clientId === undefined ? {} : { clientId }),
    ...(task === undefined ? {} : { task }),
    ...(subject === undefined ? {} : { subject }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

function findRepeat(own: readonly StoredEvent[], { clientId, input, settings }: AdmitOptions): Repeat | undefined {
  if (clientId === undefined) return undefined;
  for (const { body, version } of own) {
    if (body.type !== "turn.admitted" || body.clientId !== clientId) continue;
    if (canonical([body.input, body.settings]) !== canonical([input, settings])) {
      throw new HeddleError("store.id-conflict", `client id ${clientId} was used before with other input`);
    }
    return { kind: "repeat", turnId: body.turnId, admittedVersion: version };
  }
  return undefined;
}

/** Input that waited is begun once, and not after somebody took it out. */
function refuseGone(own: readonly StoredEvent[], turnId: string | undefined): void {
  if (turnId === undefined) return;
  const isGone = own.some(
    ({ body }) => (body.type === "turn.admitted" || body.type === "turn.dequeued") && body.turnId === turnId,
  );
  if (isGone) throw new HeddleError("turn.not-found", `turn ${turnId} waits no longer`);
}

/** Turns follow one another, so the last that began or ended says it. */
function refuseWhileBusy(own: readonly StoredEvent[], threadId: string): void {
  const last = own.findLast(({ body }) => body.type === "turn.admitted" || body.type === "turn.completed")?.body;
  if (last?.type === "turn.admitted")
    throw new HeddleError("turn.active", `thread ${threadId} is busy with turn ${last.turnId}; steer or interrupt it`);
}
