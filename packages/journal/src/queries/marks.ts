import type { StoredEvent } from "@heddle/protocol";

export type MarkKind =
  | "thread.reverted"
  | "thread.named"
  | "thread.settings-changed"
  | "thread.tools-declared"
  | "thread.goal-changed"
  /** Named by `attachmentName`. */
  | "thread.attachment-changed"
  /** Named by the runner. */
  | "agent.connected"
  | "context.loaded"
  | "context.compacted"
  | "context.left-out"
  | "approval.requested"
  | "hop.taken"
  | "acceptedForThread"
  | "userMessage"
  /** An edit that was made. */
  | "fileChange"
  /** Both named by the turn. */
  | "turn.queued"
  | "turn.dequeued"
  /** Input under a client's own id: a turn, queued, or steering. */
  | "sent"
  | "processLeft"
  | "task.taken"
  | "task.prepared"
  | "task.turn-ended"
  /** Named by the hash of the tree that was judged on. */
  | "task.checked"
  /** Decides what the next attempt begins with. */
  | "task.step"
  /** A baseline, or the user's retry, which may ask for a new one. */
  | "task.baseline";

export interface MarkQuery {
  readonly stream: string;
  readonly kinds: readonly MarkKind[];
  readonly name?: string;
  readonly after?: number;
  readonly upTo?: number;
  readonly newest?: number;
}

export interface StreamQuery {
  readonly kind: MarkKind;
  readonly name: string;
  readonly after?: string;
  readonly limit: number;
}

/** One attachment has one name in every thread. */
export function attachmentName(of: { readonly attachmentType: string; readonly identityKey: string }): string {
  return JSON.stringify([of.attachmentType, of.identityKey]);
}

export interface MarkQueries {
  /** In the order of their versions, each once. */
  events(look: MarkQuery): Promise<readonly StoredEvent[]>;
  versions(look: MarkQuery): Promise<readonly number[]>;
  /** Streams that have such a mark, by their names: at most `limit` behind one. */
  streams(look: StreamQuery): Promise<readonly string[]>;
}
