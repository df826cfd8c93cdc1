/** Where notifications go. A sink sends one and reports how that went; when to try again is decided in delivery.ts. */
import { createHash } from "node:crypto";
import type { Journal, NotificationRow } from "@heddle/journal";
import { HeddleError, reasonOf, type By } from "@heddle/protocol";
import type { NotificationName } from "./names.ts";

export interface Outgoing {
  /** The same at every try, so that the receiver recognises a repetition. */
  readonly id: string;
  readonly event: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export interface SendResult {
  /** `dead`: no further try can help. */
  readonly kind: "delivered" | "retry" | "dead";
  readonly status?: number;
  readonly message: string;
  /** Of `retry`: how long the receiver asked to wait. */
  readonly afterMs?: number;
}

export interface Sink {
  readonly name: string;
  readonly kind: string;
  /** Where it goes, without secrets. */
  readonly target: string;
  readonly events: ReadonlySet<NotificationName>;
  /** Values that must appear in no record and on no screen. */
  readonly secrets: readonly string[];
  /** Fewer tries than delivery.ts allows. */
  readonly maxTries?: number;
  send(notification: Outgoing, options: { readonly signal: AbortSignal }): Promise<SendResult>;
}

/** The stream that a sink's notifications are stored in. */
export function sinkStream(name: string): string {
  return `sink_${name}`;
}

const POSITION_DIGITS = 12;

/** Made from what it is about, so that queueing it twice gives the same id; ids sort by position. */
export function notificationId(sink: string, event: string, position: number): string {
  const hash = createHash("sha256").update(`${sink}\n${event}`).digest("hex").slice(0, 8);
  return `ntf_${String(position).padStart(POSITION_DIGITS, "0")}-${hash}`;
}

/** Puts a notification back into its sink's queue, with all its tries before it. */
export async function redeliver(journal: Journal, { id, by }: { readonly id: string } & By): Promise<NotificationRow> {
  const found = await journal.notifications.get(id);
  if (found === undefined)
    throw new HeddleError("usage.invalid", `there is no notification ${id}; see heddle notify dead`);
  await journal.append({
    stream: sinkStream(found.sink),
    author: by,
    events: [{ type: "notification.redelivered", v: 1, notificationId: id }],
  });
  return (await journal.notifications.get(id)) ?? found;
}

const TEST_MS = 60_000;

/** Sends a sink one test, past its queue. */
export function testSink(sink: Sink): Promise<SendResult> {
  const now = Date.now();
  const payload = {
    schema_version: "1.0",
    event: "NOTIFY_TEST",
    task_id: "task_test",
    task_name: "Heddle",
    timestamp: now / 1000,
    timestamp_iso: new Date(now).toISOString(),
    data: { summary: "This is a test. Notifications arrive." },
  };
  const notification = { id: `ntf_test-${now.toString(16)}`, event: "NOTIFY_TEST", payload };
  return sink.send(notification, { signal: AbortSignal.timeout(TEST_MS) }).catch(asRetry);
}

/** Of a send that threw. */
export function asRetry(error: unknown): SendResult {
  return { kind: "retry", message: reasonOf(error) };
}
