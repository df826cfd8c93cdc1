/**
 * The journal: where events are appended, and the only writer of state. Its promises, each tested once per back-end:
 *
 *  1. An event is visible to readers only after it and its projections are committed.
 *  2. Per stream versions are dense; an append may name the version it expects.
 *  3. An append may carry a key; the same key twice returns the first result; the same key with other content is a conflict.
 *  4. A stored event never changes. A new shape is a new `v` and an upcaster. What it said can be purged with its whole
 *     thread, on record; who, when and its hash stay.
 *  5. A reader that asks "after N" misses nothing and sees nothing twice, also across processes. Positions need not be dense,
 *     and a store may number events in another order than it commits them: then it shows none before all lower ones are
 *     settled. A reader takes the position of the last event it saw as its next N, and never counts. A cursor belongs to an
 *     incarnation of the store: after a restore or a failover that lost events it is `cursor.expired`, never a silent gap.
 *  6. Acknowledged means durable: when `append` resolves, the events survive `kill -9` and loss of power
 *     (`durability: "relaxed"` gives up the power-loss half; on a server it is `full`, because others have seen the event).
 *     `Journal.durability` names what they survive besides: `primary` is a loss of power at the database's machine, `quorum`
 *     also the loss of that machine. An append of which no answer came is looked up before anybody is told that it failed;
 *     where that is not possible it is `store.unknown`.
 *  7. Projections can be dropped and rebuilt from events and come out equal.
 *  8. The store opens after `kill -9`, a torn write or a full disk, or names the first damaged record and opens read-only.
 *     It is never recreated or truncated. Where several machines share a store, every process refuses appends once one of them
 *     misses an acknowledged event, until its owner accepts the loss.
 *  9. Several processes, on several machines where the store allows it, may append at once without "database is locked"
 *     reaching a user: waiting has a deadline, then it is `store.busy`.
 * 10. An append may carry a lease. When the turn or task has been taken by another process since, or has ended, it is refused
 *     with `lease.lost` and writes nothing, whatever any clock says.
 * 11. An append may carry a guard about other streams. It is looked at in the transaction of the append: of two that exclude
     each other one is stored, in whatever processes they were begun.
 */
import type { Author, EventBody, EventType, HeddleError, Lease, StoredEvent } from "@heddle/protocol";
import type { AppendGuard } from "./record/guard.ts";
import type { Checkpoint } from "./evidence/checkpoints.ts";
import type { Leases } from "./record/leases.ts";
import type { TicketChange } from "./record/tickets.ts";
import type { BlobQueries } from "./queries/blobs.ts";
import type { EvidenceQueries } from "./queries/evidence.ts";
import type { MarkQueries } from "./queries/marks.ts";
import type { MessageQueries } from "./queries/messages.ts";
import type { NotificationQueries } from "./queries/notifications.ts";
import type { TaskQueries } from "./queries/tasks.ts";
import type { ThreadQueries } from "./queries/threads.ts";
import type { UsageQueries } from "./queries/usage.ts";
import type { ReplayReport } from "./replay/replay.ts";
import type { Redactor } from "./redaction/redact.ts";

export interface Append {
  readonly stream: string;
  readonly author: Author;
  readonly events: readonly EventBody[];
  /** The stream's version before this append; another one is `store.version-conflict`. 0: the stream must be new. */
  readonly expectedVersion?: number;
  /** Same key and same content: the first result again. Same key, other content: `store.id-conflict`. */
  readonly key?: string;
  /** The holder's lease; refused with `lease.lost` when it is not held any more. */
  readonly lease?: Lease;
  readonly guard?: AppendGuard;
  /** Committed with the events, or not at all; a store whose queue is its projection needs none. */
  readonly tickets?: readonly TicketChange[];
  /** `full` when absent. */
  readonly durability?: "full" | "relaxed";
}

export interface Purge {
  readonly stream: string;
  readonly author: Author;
  readonly reason: string;
}

export interface ExportPart {
  readonly stream: string;
  readonly upTo?: number;
}

export interface ExportOptions {
  /** What was asked for, of the streams; the last one when absent. */
  readonly subjects?: readonly string[] | undefined;
  /** With the whole outputs that these streams name and the home keeps. */
  readonly withOutputs?: boolean | undefined;
}

export interface Appended {
  readonly events: readonly StoredEvent[];
  /** The key was used before with the same content; nothing was written. */
  readonly isRepeat: boolean;
}

export interface ReadOptions {
  /** Absent: the whole journal. */
  readonly stream?: string;
  /** The version in one stream, the position in the whole journal. 0: from the beginning. */
  readonly after: number;
  readonly limit?: number;
  /** Not cached: for reading long streams once. */
  readonly types?: readonly EventType[];
}

export interface TailOptions {
  readonly stream?: string;
  readonly after: number;
  /** Of the store that the cursor is of; another one is `cursor.expired`. */
  readonly incarnation?: number | undefined;
  readonly signal: AbortSignal;
}

/** `disk`: of this machine; `primary`: of the database's machine; `quorum`: of another machine too. */
export type Durability = "disk" | "primary" | "quorum";

/** The first record that was altered or lost. */
export interface Damage {
  readonly kind:
    | "tail-lost"
    | "event-altered"
    | "body-altered"
    | "chain-broken"
    | "version-gap"
    | "checkpoint-mismatch"
    | "checkpoint-forged"
    | "file-corrupt";
  readonly message: string;
  readonly stream?: string;
  readonly version?: number;
  readonly position?: number;
  /** What shows it, when not the chain itself. */
  readonly by?: "witness" | "checkpoint";
}

/** A problem that puts nothing acknowledged in doubt. */
export interface Notice {
  readonly kind:
    | "read-only"
    | "witness-torn"
    | "witness-unreadable"
    | "checkpoint-torn"
    | "key-unusable"
    | "witness-failed"
    | "checkpoint-failed"
    | "bodies-purged"
    | "purge-unsettled";
  readonly message: string;
}

export interface VerifyWatch {
  /** Called now and then. `of`: the total, where known. */
  readonly onProgress?: (progress: { readonly events: number; readonly of: number | undefined }) => void;
  /** Absent: as many threads as help. */
  readonly walkers?: number;
  /** Ends it: then it throws the reason, and says nothing about the record. */
  readonly signal?: AbortSignal | undefined;
}

export interface MissingEvidence {
  readonly kind: "witness" | "checkpoint" | "key";
  readonly message: string;
  readonly stream?: string;
}

export interface VerifyReport {
  readonly events: number;
  readonly streams: number;
  readonly checkpoints: number;
  /** Lines of the witness. */
  readonly claims: number;
  readonly damage: readonly Damage[];
  readonly notices: readonly Notice[];
  /** Evidence outside the database that should exist. Without it, the record may have been rewritten. */
  readonly missing: readonly MissingEvidence[];
  readonly violations: readonly string[];
}

export interface Journal extends AsyncDisposable {
  /** Set when the store is damaged; every append is then refused with `store.damaged`. */
  readonly damage: Damage | undefined;
  /** False when damaged, or when the files cannot be written: then appends are refused with `store.read-only`. */
  readonly isWritable: boolean;
  readonly notices: readonly Notice[];
  /** Goes up when events that were acknowledged are given up, and others may get their positions. */
  readonly incarnation: number;
  /** What an acknowledged event survives the loss of: power, the machine of the database, or that machine altogether. */
  readonly durability: Durability;
  /** Why an append would be refused now; undefined: it would be accepted. */
  refusal(): Promise<HeddleError | undefined>;
  /** For appends, and for live output. */
  readonly redactor: Redactor;
  append(append: Append): Promise<Appended>;
  /**
   * Deletes a thread for good: appends `thread.deleted`, then removes the bodies of all earlier events, in slices
   * between which others append; after a crash it continues. Authors, times and the chain stay, so that the record
   * still verifies; whole outputs that only this thread names go with it. Refused with `turn.active` while a turn is open and with `thread.has-forks` while another thread's
   * past is in this one.
   */
  purge(purge: Purge): Promise<StoredEvent>;
  /** Continues purges that a crash has cut off. */
  finishPurges(): Promise<void>;
  /** Resolves when the room of purges here is given back, as far as possible; `notices` name what stays. */
  settled(): Promise<void>;
  /** Rewrites the database: no fragment stays, and all room is given back. Nobody else can write meanwhile. */
  compact(): Promise<void>;
  /** Of one stream: `store.purged` where an event was purged. Of the whole journal: purged events are left out. */
  read(options: ReadOptions): Promise<readonly StoredEvent[]>;
  /** Everything after a cursor, then whatever any process commits next, until the signal aborts. */
  tail(options: TailOptions): AsyncIterable<StoredEvent>;
  position(): Promise<number>;
  version(stream: string): Promise<number>;
  /** Walks chains, bodies, checkpoints and witness of one stream, or of all. */
  verify(stream?: string, watch?: VerifyWatch): Promise<VerifyReport>;
  /**
   * Reads the events of one stream, or of all, again: whether they make sense together, and whether every call was inside
   * the envelope on record. By an evaluator that shares no code with what enforced it.
   */
  replay(stream?: string, watch?: Pick<VerifyWatch, "onProgress" | "signal">): Promise<ReplayReport>;
  /** Lists the files of these folders with their hashes, keeps the list in the home, and returns its name for an event. */
  keepManifest(roots: readonly string[], signal: AbortSignal): Promise<string>;
  /**
   * Damage of a stream after a version, if any: in its newest events up to a few thousand, its newest checkpoints and
   * claims. What this process has checked, and no other has written to since, is not checked again.
   */
  prove(stream: string, after?: number): Promise<Damage | undefined>;
  /** The newest signed heads of a stream, of every machine of the store, oldest first; verification says if they are genuine. */
  checkpoints(stream: string): Promise<readonly Checkpoint[]>;
  /** JSON lines that others can check with `verifyExport`. Read in pages, never held whole. */
  exportLines(parts: readonly ExportPart[], options?: ExportOptions): AsyncIterable<string>;
  rebuildProjections(): Promise<void>;
  readonly threads: ThreadQueries;
  readonly marks: MarkQueries;
  readonly messages: MessageQueries;
  readonly tasks: TaskQueries;
  readonly notifications: NotificationQueries;
  readonly usage: UsageQueries;
  readonly evidence: EvidenceQueries;
  readonly blobs: BlobQueries;
  readonly leases: Leases;
}
