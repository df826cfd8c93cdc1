/**
 * Leases for holders and others. A process renews all that it holds with one write, and learns by it what another
 * process has taken. An owner that cannot be seen otherwise is watched by its renewals, on the watcher's own steady
 * clock: a wall clock that jumps ends nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import { clockMs, leaseLost, ownerOf, type Holder, type Lease } from "@heddle/protocol";

export interface LeaseRow extends Lease {
  readonly stream: string;
  readonly holder: Holder;
}

export interface HeldLease extends Lease, Disposable {
  /** Aborts with `lease.lost` when another process has taken it. */
  readonly lost: AbortSignal;
}

export interface Leases {
  /** Between two renewals, and between two looks at other owners. */
  readonly renewEveryMs: number;
  held(): Promise<readonly LeaseRow[]>;
  /** Renews it until it is disposed of. The caller has taken it by an append. */
  hold(lease: Lease, holder: Holder): HeldLease;
  /**
   * Whether an owner that cannot be seen from here has let its leases expire; false while that is not certain. `wait`:
   * until it is, while the store's own time says that they have.
   */
  isOver(holder: Holder, options?: { readonly wait: boolean }): Promise<boolean>;
  /** It was fenced, and what it held is not taken yet: over, whether its process lives or not. */
  isFenced(holder: Holder): Promise<boolean>;
  close(): Promise<void>;
}

export interface OwnerRow {
  /** Changes with each renewal. */
  readonly beat: number;
  readonly expiresAt: number;
  readonly leaseMs: number;
}

export interface LeaseStore {
  readonly leaseMs: number;
  now(): number;
  /** One write; returns what the owner holds. */
  renew(owner: string): Promise<readonly Lease[]>;
  owner(owner: string): Promise<OwnerRow | undefined>;
  held(): Promise<readonly LeaseRow[]>;
}

export const LEASE_MS = 12_000;
/** How long leases of a fenced process last. */
export const FENCED_MS = 0;
const RENEWALS_PER_LEASE = 3;
/** More than one renewal: a living owner that only looks expired renews within this. */
const CONFIRM_PART = 0.6;
/** A watcher that has not looked for this long was away itself, and begins again. */
const AWAY_MS = 15_000;
const WAIT_STEP_MS = 50;

export function createLeases(store: LeaseStore): Leases {
  const renewEveryMs = store.leaseMs / RENEWALS_PER_LEASE;
  const own = new Map<Held, string>();
  const watched = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;

  async function renewAll(): Promise<void> {
    // What is held only after this may not be in the answer yet.
    const before = [...own];
    for (const owner of new Set(own.values())) {
      const leases = await store.renew(owner);
      for (const [held, of] of before) if (of === owner) held.compare(leases);
    }
  }

  function tick(): void {
    // A failed renewal is tried again at the next; every append is checked all the same.
    renewing ??= renewAll()
      .catch(() => undefined)
      .finally(() => {
        renewing = undefined;
      });
  }

  async function look(owner: string): Promise<LeaseState> {
    const row = await store.owner(owner);
    if (row === undefined) {
      // Taken by a Heddle without leases: nothing of it expires.
      watched.delete(owner);
      return "held";
    }
    const now = clockMs();
    const known = watched.get(owner);
    const isSame = known?.beat === row.beat && now - known.lookedAt < AWAY_MS;
    const since = isSame ? known.since : now;
    watched.set(owner, { beat: row.beat, since, lookedAt: now });
    const quietMs = now - since;
    if (quietMs >= row.leaseMs) return "over";
    if (store.now() < row.expiresAt) return "held";
    return quietMs >= row.leaseMs * CONFIRM_PART ? "over" : "doubtful";
  }

  return {
    renewEveryMs,
    held: () => store.held(),
    hold(lease, holder) {
      const held = createHeld(lease, () => {
        own.delete(held);
        if (own.size === 0) clearInterval(timer);
      });
      if (own.size === 0) timer = setInterval(tick, renewEveryMs).unref();
      own.set(held, ownerOf(holder));
      return held;
    },
    async isOver(holder, { wait } = { wait: false }) {
      const owner = ownerOf(holder);
      let state = await look(owner);
      const beat = watched.get(owner)?.beat;
      // A renewal decides, whatever the clock says.
      while (wait && state === "doubtful" && watched.get(owner)?.beat === beat) {
        await delay(WAIT_STEP_MS);
        state = await look(owner);
      }
      return state === "over";
    },
    isFenced: async (holder) => (await store.owner(ownerOf(holder)))?.leaseMs === FENCED_MS,
    async close() {
      clearInterval(timer);
      await renewing;
    },
  };
}

interface Watched {
  readonly beat: number;
  readonly since: number;
  readonly lookedAt: number;
}

/** `doubtful`: expired by the store's time, but that clock may have jumped. */
type LeaseState = "held" | "doubtful" | "over";

interface Held extends HeldLease {
  compare(leases: readonly Lease[]): void;
}

function createHeld(lease: Lease, release: () => void): Held {
  const control = new AbortController();
  const { subject, epoch } = lease;
  return {
    subject,
    epoch,
    lost: control.signal,
    compare(leases) {
      const current = leases.find((other) => other.subject === subject)?.epoch;
      if (current !== epoch) control.abort(leaseLost(lease, current));
    },
    [Symbol.dispose]: release,
  };
}
