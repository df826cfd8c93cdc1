/** Events that later ones depend on, found without reading what lies between them. */
import type { StoredEvent } from "@heddle/protocol";

export type MarkKind =
  | "thread.reverted"
  | "thread.settings-changed"
  | "thread.tools-declared"
  | "thread.goal-changed"
  | "context.loaded"
  | "context.compacted"
  | "context.left-out"
  | "approval.requested"
  | "hop.taken"
  /** An answer that holds for the whole thread, named by its question. */
  | "acceptedForThread"
  /** A message of the user, named by its item. */
  | "userMessage"
  /** Input that a client sent under an id of its own: its turn, its place in the queue, or an addition to a turn. */
  | "sent"
  /** A command that outlived its call, named by its number. */
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

export interface MarkLook {
  readonly stream: string;
  readonly kinds: readonly MarkKind[];
  readonly name?: string;
  /** Versions: behind this one, up to that one. */
  readonly after?: number;
  readonly upTo?: number;
  /** The last so many of them; all when absent. */
  readonly newest?: number;
}

export interface MarkQueries {
  /** In the order of their versions; none is there twice. */
  events(look: MarkLook): Promise<readonly StoredEvent[]>;
  /** Their versions alone. */
  versions(look: MarkLook): Promise<readonly number[]>;
}
