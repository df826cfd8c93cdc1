/**
 * Admission: once it resolves, the input is durable and will be run or reported as not run. The same client id with the
 * same input is the same turn; with other input it is a conflict. One turn at a time in a thread.
 */
import {
  canonical,
  defined,
  HeddleError,
  newTurnId,
  type By,
  type Envelope,
  type EventBody,
  type EventOf,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Journal } from "@heddle/journal";
import { withGitInfo } from "../context/git-info.ts";
import type { StartTurn } from "../heddle.ts";
import { thisHolder } from "../recovery/holder.ts";
import { refuseSpentDay, type DayLimits } from "./day-limits.ts";
import { appendAt } from "../threads/append-at.ts";

type Asked =
  | "input"
  | "role"
  | "source"
  | "messages"
  | "agentName"
  | "context"
  | "settings"
  | "once"
  | "clientId"
  | "traceparent"
  | "turnId"
  | "queuedVersion"
  | "subject";

export interface AdmitOptions extends By, Pick<StartTurn, Asked> {
  readonly threadId: string;
  /** The thread begins with this turn. */
  readonly newThread?: Omit<EventOf<"thread.created">, "type" | "v">;
  /** The thread works in this folder from here on. */
  readonly movedTo?: string;
  /** Settings of the thread from here on, under the keys of the journal. */
  readonly keep?: StartTurn["keep"];
  readonly task?: "compact" | "review" | "shell" | "goal" | "outside" | "message" | "attached";
  /** Of a turn that messages started. */
  readonly bound?: Envelope | undefined;
  readonly timeoutMs?: number;
  readonly dayLimits?: DayLimits | undefined;
  /** Of an outside agent. */
  readonly outside?: EventOf<"turn.admitted">["outside"];
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
      readonly history: readonly StoredEvent[];
    };

/** What admission would do now, before any work for the turn: a repeat, a refusal (thrown), or undefined. */
export async function foresee(journal: Journal, options: AdmitOptions): Promise<Repeat | undefined> {
  const repeat = await findRepeat(journal, options);
  if (repeat !== undefined) return repeat;
  await refuseWhileBusy(journal, options);
  const refusal = await journal.refusal();
  if (refusal !== undefined) throw refusal;
  if (options.dayLimits !== undefined) {
    const workspace = options.movedTo ?? options.newThread?.workspace;
    await refuseSpentDay(journal, options.dayLimits, { threadId: options.threadId, workspace, now: Date.now() });
  }
  return undefined;
}

export async function admit(journal: Journal, options: AdmitOptions): Promise<Admitted> {
  const { threadId, newThread } = options;
  return appendAt(journal, threadId, async (expectedVersion): Promise<Admitted> => {
    // Client ids and open turns are the thread's own, also in a fork; its past may be inherited.
    const repeat = await findRepeat(journal, options);
    if (repeat !== undefined) return repeat;
    await refuseWhileBusy(journal, options);
    await refuseGone(journal, options);
    const isNew = newThread !== undefined && newThread.forkedFrom === undefined;
    const past = isNew ? [] : await readPastOf(journal, options);
    const turnId = options.turnId ?? newTurnId();
    failpoint("turn.before-admit");
    const { events } = await journal.append({
      stream: threadId,
      author: options.by,
      events: [
        ...created(newThread),
        ...named(options),
        ...moved(options),
        ...kept(options),
        admittedEvent(turnId, options),
      ],
      expectedVersion: newThread === undefined ? expectedVersion : 0,
    });
    failpoint("turn.after-admit");
    return { kind: "new", turnId, history: [...past, ...events] };
  });
}

/** Loaded for a thread with a past: a plain run has none. */
async function readPastOf(journal: Journal, { threadId, newThread }: AdmitOptions): Promise<readonly StoredEvent[]> {
  const { readResumed } = await import("../threads/resumed.ts");
  return readResumed(journal, threadId, newThread?.forkedFrom);
}

function created(newThread: AdmitOptions["newThread"]): EventBody[] {
  return newThread === undefined ? [] : [...withGitInfo({ type: "thread.created", v: 1, ...newThread })];
}

function named({ agentName: name }: AdmitOptions): EventBody[] {
  return name === undefined ? [] : [{ type: "thread.agent-named", v: 1, name }];
}

function moved({ movedTo }: AdmitOptions): EventBody[] {
  return movedTo === undefined ? [] : [{ type: "thread.moved", v: 1, workspace: movedTo }];
}

function kept({ keep = {} }: AdmitOptions): EventBody[] {
  return Object.keys(keep).length === 0 ? [] : [{ type: "thread.settings-changed", v: 1, changes: keep }];
}

function admittedEvent(turnId: string, options: AdmitOptions): EventOf<"turn.admitted"> {
  const { input, context = [], settings, once = [], clientId, task, subject, timeoutMs, outside } = options;
  const { role, source, messages, bound, traceparent } = options;
  return {
    type: "turn.admitted",
    v: 1,
    turnId,
    input: [...input],
    ...defined({ role, source, bound, traceparent, messages: messages && [...messages] }),
    ...(context.length === 0 ? {} : { context: [...context] }),
    settings,
    ...(once.length === 0 ? {} : { once: [...once] }),
    holder: thisHolder(),
    ...(clientId === undefined ? {} : { clientId }),
    ...(task === undefined ? {} : { task }),
    ...(subject === undefined ? {} : { subject }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(outside === undefined ? {} : { outside }),
  };
}

async function findRepeat(journal: Journal, options: AdmitOptions): Promise<Repeat | undefined> {
  const { threadId: stream, clientId: name, input, settings } = options;
  if (name === undefined) return undefined;
  for (const { body, version } of await journal.marks.events({ stream, kinds: ["sent"], name })) {
    if (body.type !== "turn.admitted") continue;
    if (canonical([body.input, body.settings]) !== canonical([input, settings])) {
      throw new HeddleError("store.id-conflict", `client id ${name} was used before with other input`);
    }
    return { kind: "repeat", turnId: body.turnId, admittedVersion: version };
  }
  return undefined;
}

/** Queued input is begun once, and not after it was removed or changed. */
async function refuseGone(journal: Journal, { threadId, turnId, queuedVersion }: AdmitOptions): Promise<void> {
  if (turnId === undefined) return;
  const row = (await journal.threads.queued(threadId)).find((queued) => queued.turnId === turnId);
  if (row === undefined || row.queuedVersion !== (queuedVersion ?? row.queuedVersion))
    throw new HeddleError("turn.not-found", `turn ${turnId} is not queued`);
}

async function refuseWhileBusy(journal: Journal, { threadId, newThread }: AdmitOptions): Promise<void> {
  const last = newThread === undefined ? await journal.threads.lastTurn(threadId) : undefined;
  if (last?.status === "open")
    throw new HeddleError("turn.active", `thread ${threadId} is busy with turn ${last.id}; steer or interrupt it`);
}
