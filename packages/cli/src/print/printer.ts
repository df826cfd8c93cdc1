/** A printer follows one turn: stored events in order, and in between the live deltas of running items. It keeps no state
 *  of its own beyond what it has already shown. */
import type { ItemDelta, StoredEvent } from "@heddle/protocol";

export interface Printer {
  /** Resolves when there is room for more. */
  event(event: StoredEvent): Promise<void>;
  delta(delta: ItemDelta): void;
  /** Something to know that is no event of the turn. */
  notice(text: string): Promise<void>;
}
