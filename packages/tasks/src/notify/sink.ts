/** Where notifications go. A sink sends one and says how that went; when to try again is not its business (delivery.ts). */
import type { NotificationName } from "./names.ts";

/** What is sent, as it was stored. */
export interface Outgoing {
  /** The same at every try: whoever receives can tell a repetition. */
  readonly id: string;
  /** TASK_VERIFIED … */
  readonly event: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export type SendResult =
  | { readonly kind: "delivered"; readonly status?: number; readonly message: string }
  /** Worth another try, not before `afterMs` where the receiver said so. */
  | { readonly kind: "retry"; readonly status?: number; readonly message: string; readonly afterMs?: number }
  /** No further try can help. */
  | { readonly kind: "dead"; readonly status?: number; readonly message: string };

export interface Sink {
  readonly name: string;
  readonly kind: string;
  /** Where it goes, for people: without what is secret about it. */
  readonly target: string;
  readonly events: ReadonlySet<NotificationName>;
  /** Values that must be in no record and on no screen. */
  readonly secrets: readonly string[];
  /** Fewer tries than the patience of delivery.ts gives. */
  readonly maxTries?: number;
  send(notification: Outgoing, options: { readonly signal: AbortSignal }): Promise<SendResult>;
}

/** The stream that a sink's notifications are stored in. */
export function sinkStream(name: string): string {
  return `sink_${name}`;
}
