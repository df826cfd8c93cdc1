/** The workers of a store, as any process sees them: who lives, who is to take nothing new, who is fenced. */
import type { Journal } from "@heddle/journal";
import {
  HeddleError,
  isHeddleError,
  isWorkerEvent,
  never,
  ownerOf,
  type Author,
  type EventBody,
  type EventOf,
  type WorkerRole,
} from "@heddle/protocol";
import { leaseStateOf } from "./holder.ts";
import { isWorkerStream, type Member } from "./membership.ts";

/** `lost`: its process has ended, or it has not renewed its lease; the next worker that looks fences it. */
export type WorkerState = "ready" | "draining" | "lost";

export interface WorkerRow {
  readonly id: string;
  readonly name: string;
  readonly role: WorkerRole;
  readonly state: WorkerState;
  readonly labels: readonly string[];
  readonly concurrency: number;
  readonly version: string;
  readonly joinedAt: number;
  /** What it holds. */
  readonly tasks: readonly string[];
  readonly turns: readonly string[];
}

type Joined = EventOf<"worker.joined">;

interface Known {
  readonly id: string;
  readonly joined: Joined;
  readonly at: number;
  readonly isDraining: boolean;
  readonly version: number;
}

/** Those that have joined and neither left nor been fenced, oldest first. */
export async function listWorkers(journal: Journal): Promise<readonly WorkerRow[]> {
  const held = await journal.leases.held();
  const rows: WorkerRow[] = [];
  for (const { subject: id } of held.filter(({ subject }) => isWorkerStream(subject))) {
    const known = await knownWorker(journal, id);
    if (known === undefined) continue;
    const { name, role, labels, concurrency, version, holder } = known.joined;
    const owner = ownerOf(holder);
    const own = held.filter((row) => ownerOf(row.holder) === owner && row.subject !== id);
    const isLost = (await leaseStateOf(journal, holder)) === "dead";
    rows.push({
      id,
      name,
      role,
      state: isLost ? "lost" : known.isDraining ? "draining" : "ready",
      labels,
      concurrency,
      version,
      joinedAt: known.at,
      tasks: own.filter(({ subject, stream }) => subject === stream).map(({ subject }) => subject),
      turns: own.filter(({ subject, stream }) => subject !== stream).map(({ subject }) => subject),
    });
  }
  return rows.toSorted((a, b) => a.joinedAt - b.joinedAt);
}

/** Of servers, what only one does goes to the one that joined first; throws `store.owned` at all others. */
export async function claimDuty(journal: Journal, member: Pick<Member, "id">): Promise<AsyncDisposable> {
  const all = await listWorkers(journal);
  const first = all.find(({ role, state }) => role !== "worker" && state !== "lost");
  if (first?.id === member.id) return { [Symbol.asyncDispose]: () => Promise.resolve() };
  throw new HeddleError("store.owned", `${first?.name ?? "another server"} does that for this store`);
}

/** By its name, its id or the beginning of its id. */
export async function findWorker(journal: Journal, word: string): Promise<WorkerRow> {
  const all = await listWorkers(journal);
  const found = all.filter(({ id, name }) => name === word || id === word || id.startsWith(word));
  const [worker] = found;
  const help = "see: heddle cluster status";
  if (worker === undefined) throw new HeddleError("worker.not-found", `no worker is called ${word}; ${help}`);
  if (found.length > 1)
    throw new HeddleError("worker.ambiguous", `${word} names ${found.length} workers; take an id, ${help}`);
  return worker;
}

/** False: it drains already, or is gone. */
export function drainWorker(journal: Journal, id: string, act: WorkerAct): Promise<boolean> {
  return change(journal, id, act.author, ({ isDraining }) =>
    isDraining ? undefined : { type: "worker.drained", v: 1, reason: act.reason },
  );
}

/** Ends its leases, whether it lives or not. False: it is gone already. */
export function fenceWorker(journal: Journal, id: string, act: WorkerAct): Promise<boolean> {
  return change(journal, id, act.author, ({ joined: { holder } }) => ({
    type: "worker.fenced",
    v: 1,
    holder,
    reason: act.reason,
  }));
}

export interface WorkerAct {
  readonly author: Author;
  readonly reason: string;
}

/** Fences workers whose processes have ended, or that have not renewed their leases. */
export async function fenceLost(journal: Journal): Promise<void> {
  for (const { subject: id, holder } of await journal.leases.held()) {
    if (!isWorkerStream(id) || (await leaseStateOf(journal, holder)) !== "dead") continue;
    await fenceWorker(journal, id, { author: "system", reason: "its lease was not renewed, or its process has ended" });
  }
}

type Change = (known: Known) => EventBody | undefined;

async function change(journal: Journal, id: string, author: Author, decide: Change): Promise<boolean> {
  for (;;) {
    const known = await knownWorker(journal, id);
    const event = known && decide(known);
    if (event === undefined) return false;
    try {
      await journal.append({ stream: id, author, events: [event], expectedVersion: known?.version ?? 0 });
      return true;
    } catch (error) {
      // Each conflict is another change of a stream of four events at most.
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
}

/** undefined: it is gone. */
async function knownWorker(journal: Journal, id: string): Promise<Known | undefined> {
  let known: Known | undefined;
  for (const { body, at, version } of await journal.read({ stream: id, after: 0 })) {
    if (!isWorkerEvent(body)) continue;
    switch (body.type) {
      case "worker.joined":
        known = { id, joined: body, at, isDraining: false, version };
        break;
      case "worker.drained":
        known = known && { ...known, isDraining: true, version };
        break;
      case "worker.fenced":
      case "worker.left":
        return undefined;
      default:
        never(body);
    }
  }
  return known;
}
