/**
 * Tickets: hints to workers that a task may be due. What is true of a task is its row; a ticket that is late, twice or
 * out of date costs a look. Where a store is shared by machines, a queue of its own delivers them, and they are
 * written in the transaction of the event that makes work due or takes it.
 */
export type TicketChange =
  | {
      readonly kind: "send";
      readonly queue: string;
      /** What it is about; of one that waits already, time and priority are changed. */
      readonly subject: string;
      /** Not delivered earlier. */
      readonly notBefore: number;
      /** Higher ones first. */
      readonly priority: number;
    }
  | ({ readonly kind: "done" } & TicketName);

/** A ticket that was delivered. */
export interface TicketName {
  readonly queue: string;
  readonly ticket: string;
}

/** Runs a statement inside the transaction of the append. */
export type InTransaction = (sql: string, values: readonly unknown[]) => Promise<{ readonly rows: unknown[] }>;

/** The queue of a shared store, as its journal sees it. */
export interface TicketWriter {
  /** Rejects: the appends of this transaction fail with it. */
  write(changes: readonly TicketChange[], run: InTransaction): Promise<void>;
}
