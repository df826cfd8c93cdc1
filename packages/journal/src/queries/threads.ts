import type { Envelope, ItemType, StoredEvent, ThreadParent, Usage } from "@heddle/protocol";
import type { EnvelopeStep } from "../projections/thread-envelopes.ts";

export interface ThreadRow {
  readonly id: string;
  readonly workspace: string;
  readonly origin: string;
  readonly title: string | undefined;
  readonly name: string | undefined;
  /** By which other agents and users know its agent. */
  readonly agentName: string | undefined;
  /** The beginning of its first input, on one line and safe to show. */
  readonly preview: string | undefined;
  /** It begins with the events of that thread up to that version. */
  readonly forkedFrom: { readonly threadId: string; readonly version: number } | undefined;
  /** It was started by a call in a turn of that thread. */
  readonly parent: Omit<ThreadParent, "envelope"> | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly turnCount: number;
  /** undefined: it has had no turn of its own. */
  readonly lastTurnStatus: TurnRow["status"] | undefined;
  readonly isEphemeral: boolean;
  readonly isArchived: boolean;
  /** Settings of its next turns, under the keys of the doors. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** As its clients say. */
  readonly gitInfo: GitInfo | undefined;
  /** See `logEntryCount`. */
  readonly logEntries: number;
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
  readonly admittedVersion: number;
  /** Version of its terminal event; undefined: it is open. */
  readonly endedVersion: number | undefined;
  readonly failureCode: string | undefined;
}

/** The envelope that a thread is in. */
export interface ThreadEnvelopeRow {
  readonly envelope: Envelope;
  readonly hash: string;
  /** The widest envelope of the thread; undefined: no limit. */
  readonly ceiling: Envelope | undefined;
  /** The way back; the last one was left last. */
  readonly stack: readonly EnvelopeStep[];
  readonly cause: "start" | "settings" | "hop" | "back";
  readonly enteredVersion: number;
  readonly enteredAt: number;
  /** It was left, and none was entered since. */
  readonly isLeft: boolean;
  /** Tool calls that began since it was entered. */
  readonly calls: number;
  /** By file tools since it was entered. */
  readonly bytesWritten: number;
  /** Hops of the model in the turn in which it was entered last; undefined: it was entered between turns. */
  readonly modelHops: { readonly turnId: string; readonly count: number } | undefined;
}

/** Of ended turns. */
export interface Used {
  readonly usage: Usage;
  readonly durationMs: number;
}

export interface QueuedRow {
  readonly turnId: string;
  readonly threadId: string;
  readonly queuedVersion: number;
}

export interface ThreadPageRequest {
  readonly sortBy: "createdAt" | "updatedAt";
  readonly direction: "asc" | "desc";
  readonly limit: number;
  readonly isArchived: boolean;
  /** Begin at this thread, or after it. */
  readonly from?: { readonly thread: Pick<ThreadRow, "id" | "createdAt" | "updatedAt">; readonly isIncluded: boolean };
  readonly workspaces?: readonly string[];
  /** Of their last turn, or named since. */
  readonly providers?: readonly string[];
  /** Only origins that begin so, or only those that do not. */
  readonly origin?: { readonly prefix: string; readonly begins: boolean };
  /** Only children of this thread; absent: no child threads. */
  readonly parentId?: string;
  readonly excludedIds?: readonly string[];
  /** In the name or the preview; ASCII letters match in either case. */
  readonly text?: string;
}

/** An item that has not ended. */
export interface OpenItemRow {
  readonly threadId: string;
  readonly itemId: string;
  readonly turnId: string;
  readonly type: ItemType;
  /** What it does, on one line and safe to show: the command, the tool, the files. */
  readonly text: string | undefined;
  readonly startedVersion: number;
  readonly startedAt: number;
  /** When its newest output was stored; undefined: there is none yet. */
  readonly outputAt: number | undefined;
}

/** A question without an answer. */
export interface OpenApprovalRow {
  readonly id: string;
  readonly threadId: string;
  readonly turnId: string;
  readonly version: number;
  readonly askedAt: number;
}

/** Deleted threads are in no answer but that of `isDeleted`. */
export interface ThreadQueries {
  get(threadId: string): Promise<ThreadRow | undefined>;
  isDeleted(threadId: string): Promise<boolean>;
  /** Newest first; without child threads, unless they are asked for. */
  list(options: {
    readonly workspace?: string;
    readonly limit: number;
    readonly withChildren?: boolean;
  }): Promise<readonly ThreadRow[]>;
  /** Threads that a thread has started, oldest first, closed ones too. */
  childrenOf(threadId: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  /** One page of threads that have had a turn or are forks, without ephemeral ones. */
  page(request: ThreadPageRequest): Promise<readonly ThreadRow[]>;
  named(name: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  /** Oldest first: two may have been given one name at the same moment. */
  agentsNamed(name: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  beginningWith(prefix: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  forksOf(threadId: string, options: { readonly limit: number }): Promise<readonly ThreadRow[]>;
  ephemeral(): Promise<readonly ThreadRow[]>;
  turn(turnId: string): Promise<TurnRow | undefined>;
  turns(threadId: string): Promise<readonly TurnRow[]>;
  /** The newest that was admitted at or before a version. Turns follow one another, so only this one can be open. */
  lastTurn(threadId: string, upTo?: number): Promise<TurnRow | undefined>;
  /** What the turns of a thread's own stream that had ended by a version used together. */
  usedUpTo(threadId: string, version: number): Promise<Used>;
  /** undefined: it has had no turn since envelopes are recorded. */
  envelope(threadId: string): Promise<ThreadEnvelopeRow | undefined>;
  /** Oldest first: of one thread, or of all. */
  queued(threadId?: string): Promise<readonly QueuedRow[]>;
  /**
   * Searches text, newest first (ASCII letters match in either case): at most `events` of them below a position.
   * Candidates only: the caller checks each event.
   */
  mentions(look: {
    readonly text: string;
    readonly below: number;
    readonly events: number;
  }): Promise<{ readonly found: readonly StoredEvent[]; readonly lowest: number }>;
  /** In the order they started. */
  openItems(threadIds: readonly string[]): Promise<readonly OpenItemRow[]>;
  /** Oldest first: of one thread, or of all. */
  openApprovals(threadId?: string): Promise<readonly OpenApprovalRow[]>;
  /** Versions at which the last items before a version started, oldest first. */
  itemStarts(threadId: string, look: { readonly before: number; readonly limit: number }): Promise<readonly number[]>;
  /** How many turns have ids that were made since then; an id begins with its time. */
  turnsSince(at: number): Promise<number>;
  /** Turns without their terminal event, of every thread. */
  openTurns(): Promise<readonly TurnRow[]>;
}
