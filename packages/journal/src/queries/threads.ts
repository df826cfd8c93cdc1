/** Questions about threads and turns, answered from projections. */
import type { StoredEvent, Usage } from "@heddle/protocol";

export interface ThreadRow {
  readonly id: string;
  readonly workspace: string;
  readonly origin: string;
  readonly title: string | undefined;
  /** What people call it; not unique. */
  readonly name: string | undefined;
  /** The beginning of its first input, on one line and safe to show. */
  readonly preview: string | undefined;
  /** It begins with the events of that thread up to that version. */
  readonly forkedFrom: { readonly threadId: string; readonly version: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly turnCount: number;
  /** undefined: it has had no turn of its own. */
  readonly lastTurnStatus: TurnRow["status"] | undefined;
  /** To be deleted with the run it belongs to. */
  readonly isEphemeral: boolean;
  /** Its owner has put it away. */
  readonly isArchived: boolean;
  /** What its next turns are to run with, in the keys of the doors. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Where its work belongs, as its clients say. */
  readonly gitInfo: GitInfo | undefined;
  /** How many entries its log has: see `logEntryCount`. */
  readonly logEntries: number;
  /** Of its own turns that have ended. */
  readonly usage: Usage;
}

export interface GitInfo {
  readonly sha: string | null;
  readonly branch: string | null;
  readonly originUrl: string | null;
}

export interface TurnRow {
  readonly id: string;
  readonly threadId: string;
  readonly status: "open" | "completed" | "failed" | "interrupted";
  /** Version of `turn.admitted` in the thread's stream. */
  readonly admittedVersion: number;
  /** Version of its terminal event; undefined: it is open. */
  readonly endedVersion: number | undefined;
  readonly failureCode: string | undefined;
}

/** Input that waits for its turn. */
export interface QueuedRow {
  readonly turnId: string;
  readonly threadId: string;
  /** Version of `turn.queued` in the thread's stream. */
  readonly queuedVersion: number;
}

export interface ThreadPageRequest {
  readonly sortBy: "createdAt" | "updatedAt";
  readonly direction: "asc" | "desc";
  readonly limit: number;
  readonly isArchived: boolean;
  /** Begin at this thread, or behind it. */
  readonly from?: { readonly thread: Pick<ThreadRow, "id" | "createdAt" | "updatedAt">; readonly isIncluded: boolean };
  /** Absent: all. */
  readonly workspaces?: readonly string[];
  /** Only origins that begin so, or only those that do not. */
  readonly origin?: { readonly prefix: string; readonly begins: boolean };
  readonly excludedIds?: readonly string[];
  /** In the name or the preview; ASCII letters of either case are the same. */
  readonly text?: string;
}

/** Questions answered from projections. Deleted threads are in no answer but that of `isDeleted`. */
export interface ThreadQueries {
  get(threadId: string): Promise<ThreadRow | undefined>;
  isDeleted(threadId: string): Promise<boolean>;
  /** Newest activity first. */
  list(options: { readonly workspace?: string; readonly limit: number }): Promise<readonly ThreadRow[]>;
  /** One page of the threads that somebody has spoken in, those that are to be deleted with their run left out. */
  page(request: ThreadPageRequest): Promise<readonly ThreadRow[]>;
  /** Newest activity first. */
  named(name: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  /** Threads whose past is in this one. */
  forksOf(threadId: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  /** Threads that are to be deleted when their run is over. */
  ephemeral(): Promise<readonly ThreadRow[]>;
  turn(turnId: string): Promise<TurnRow | undefined>;
  turns(threadId: string): Promise<readonly TurnRow[]>;
  /** The newest that was admitted at or before a version. Turns follow one another, so only this one can be open. */
  lastTurn(threadId: string, upTo?: number): Promise<TurnRow | undefined>;
  /** Input that waits, oldest first: of one thread, or of all. */
  queued(threadId?: string): Promise<readonly QueuedRow[]>;
  /**
   * Looks through what was said, newest first, for a piece of text (ASCII letters of either case are the same): at most
   * `events` of them below a position. Candidates only: the caller looks at what each event says.
   */
  mentions(look: {
    readonly text: string;
    readonly below: number;
    readonly events: number;
  }): Promise<{ readonly found: readonly StoredEvent[]; readonly lowest: number }>;
  /** Turns without their terminal event, of every thread; recovery starts here. */
  openTurns(): Promise<readonly TurnRow[]>;
}
