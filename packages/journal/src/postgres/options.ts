import type { TicketWriter } from "../record/tickets.ts";
import type { Redactor } from "../redaction/redact.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly home: string;
  readonly now?: (() => number) | undefined;
  readonly leaseMs?: number | undefined;
  readonly secrets?: readonly string[] | undefined;
  readonly redactor?: Redactor | undefined;
  /** The queue in the same database. */
  readonly tickets?: TicketWriter | undefined;
  /** How long a server that is away is waited for; absent: half a minute. */
  readonly patienceMs?: number | undefined;
  /** After how long without an answer a connection is given up; absent: twenty seconds. */
  readonly answerMs?: number | undefined;
  /** How long others may keep the lock; absent: fifteen seconds. */
  readonly lockMs?: number | undefined;
}
