/** The lease of a running turn: everything the turn records is appended under it. */
import type { Journal } from "@heddle/journal";
import { isHeddleError, type Lease } from "@heddle/protocol";
import { thisHolder } from "../recovery/holder.ts";

/** Appends carry the lease: a process that has lost it records nothing more. */
export type LeasedJournal = Pick<Journal, "append" | "redactor">;

export interface TurnLease extends Lease {
  readonly leased: LeasedJournal;
  readonly lost: AbortSignal;
  /** Renews the lease until the turn is over; logs when it was lost. */
  during<T>(turn: Promise<T>): Promise<T>;
}

export function holdTurn(
  journal: Journal,
  { subject, epoch }: Lease,
  log: (line: string) => void = () => undefined,
): TurnLease {
  const held = journal.leases.hold({ subject, epoch }, thisHolder());
  const { redactor } = journal;
  return {
    subject,
    epoch,
    lost: held.lost,
    leased: { redactor, append: (append) => journal.append({ ...append, lease: { subject, epoch } }) },
    async during(turn) {
      using _held = held;
      try {
        return await turn;
      } catch (error) {
        if (isHeddleError(error) && error.code === "lease.lost") log(error.message);
        throw error;
      }
    },
  };
}
