/**
 * A process as a worker of a shared store: it joins with an event that takes a lease, and everything it appends carries
 * that lease where it carries no other. Fenced, it can record nothing more.
 */
import type { Journal } from "@heddle/journal";
import {
  FIRST_EPOCH,
  HeddleError,
  isHeddleError,
  uuidv7,
  type EventBody,
  type Lease,
  type StoredEvent,
  type WorkerRole,
} from "@heddle/protocol";
import { thisHolder } from "./holder.ts";

export interface MemberOptions {
  readonly name: string;
  readonly role: WorkerRole;
  readonly labels: readonly string[];
  readonly concurrency: number;
  readonly version: string;
}

export interface Member extends AsyncDisposable {
  readonly id: string;
  readonly name: string;
  readonly labels: readonly string[];
  /** Aborts with `worker.fenced`: nothing more can be recorded, and everything has to end. */
  readonly fenced: AbortSignal;
  /** Aborts when it is asked to take nothing new. */
  readonly drained: AbortSignal;
}

const WORKER = "worker_";

export function isWorkerStream(stream: string): boolean {
  return stream.startsWith(WORKER);
}

export async function joinStore(
  journal: Journal,
  options: MemberOptions,
): Promise<{ readonly member: Member; readonly journal: Journal }> {
  const id = `${WORKER}${uuidv7()}`;
  const holder = thisHolder();
  const lease = { subject: id, epoch: FIRST_EPOCH };
  const joined: EventBody = { type: "worker.joined", v: 1, ...options, labels: [...options.labels], holder };
  await journal.append({ stream: id, author: "system", events: [joined], expectedVersion: 0 });
  const held = journal.leases.hold(lease, holder);
  const fenced = new AbortController();
  const drained = new AbortController();
  const closed = new AbortController();

  function hear({ body }: StoredEvent): void {
    if (body.type === "worker.drained") drained.abort(new HeddleError("turn.interrupted", body.reason));
    if (body.type === "worker.fenced") fence(body.reason);
  }

  function fence(reason: string): void {
    const message = `${options.name} was fenced: ${reason}; what it held is taken by others, and it records nothing more`;
    fenced.abort(new HeddleError("worker.fenced", message, { details: { worker: id } }));
  }

  async function listen(): Promise<void> {
    for await (const event of journal.tail({ stream: id, after: 1, signal: closed.signal })) hear(event);
  }

  // What cannot be read now is noticed by the next renewal, and by every append.
  const listening = listen().catch(() => undefined);
  const onLost = (): void => fence("its lease is over");
  held.lost.addEventListener("abort", onLost, { once: true });
  return {
    journal: underLease(journal, lease),
    member: {
      id,
      name: options.name,
      labels: options.labels,
      fenced: fenced.signal,
      drained: drained.signal,
      async [Symbol.asyncDispose]() {
        if (closed.signal.aborted) return;
        closed.abort();
        await listening;
        await leave(journal, lease);
        held[Symbol.dispose]();
      },
    },
  };
}

/** Fenced meanwhile, or the store is gone: then others see it by its lease. */
async function leave(journal: Journal, lease: Lease): Promise<void> {
  const left = { type: "worker.left", v: 1, reason: "it was closed" } as const;
  await journal.append({ stream: lease.subject, author: "system", events: [left], lease }).catch((error: unknown) => {
    if (!isHeddleError(error)) throw error;
  });
}

/** The same journal; an append without a lease carries this one. */
function underLease(journal: Journal, lease: Lease): Journal {
  const append: Journal["append"] = (given) => journal.append({ lease, ...given });
  return new Proxy(journal, {
    get(target, name) {
      if (name === "append") return append;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
