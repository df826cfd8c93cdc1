/**
 * Reads a stored body as today's shape. A stored event never changes: when a type gets a new `v`, the step from the
 * old one is added here, and readers see only the newest. What a newer Heddle wrote is refused, never guessed at.
 */
import { HeddleError } from "../errors.ts";
import type { EventBody, EventOf, EventType } from "./events.ts";

/** From one version to the next, by type and the version it starts from. */
export type Upcasters = Readonly<Record<string, Readonly<Record<number, (body: Body) => Body>>>>;

type Body = Readonly<Record<string, unknown>>;

const STEPS: Upcasters = {};

/** The newest version of every type; the compiler checks it against the union of events. */
export const EVENT_VERSIONS: { readonly [T in EventType]: EventOf<T>["v"] } = {
  "thread.created": 1,
  "thread.named": 1,
  "thread.agent-named": 1,
  "thread.moved": 1,
  "thread.archived": 1,
  "thread.settings-changed": 1,
  "thread.metadata-changed": 1,
  "thread.goal-changed": 1,
  "thread.attachment-changed": 1,
  "thread.tools-declared": 1,
  "thread.reverted": 1,
  "thread.deleted": 1,
  "thread.imported": 1,
  "turn.admitted": 1,
  "turn.queued": 1,
  "turn.dequeued": 1,
  "turn.started": 1,
  "turn.steered": 1,
  "turn.settings-changed": 1,
  "turn.interrupt-requested": 1,
  "turn.resumed": 1,
  "turn.completed": 1,
  "context.loaded": 1,
  "context.added": 1,
  "context.injected": 1,
  "context.compacted": 1,
  "context.left-out": 1,
  "hook.ran": 1,
  "item.imported": 1,
  "item.started": 1,
  "item.checkpointed": 1,
  "item.completed": 1,
  "model.requested": 1,
  "model.retried": 1,
  "model.responded": 1,
  "tool.intended": 1,
  "tool.settled": 1,
  "tool.answered": 1,
  "approval.requested": 1,
  "approval.resolved": 1,
  "hop.taken": 1,
  "hop.refused": 1,
  "envelope.entered": 1,
  "envelope.left": 1,
  "envelope.hop-refused": 1,
  "files.compared": 1,
  "gate.passed": 1,
  "gate.refused": 1,
  "network.used": 1,
  "network.refused": 1,
  "message.sent": 1,
  "message.received": 1,
  "message.settled": 1,
  "mcp.listed": 1,
  "background.ran": 1,
  "client.intended": 1,
  "client.settled": 1,
  "agent.started": 1,
  "agent.connected": 1,
  "agent.ended": 1,
  "path.violated": 1,
  "evidence.noted": 1,
  "evidence.collected": 1,
  "evidence.imported": 1,
  "sandbox.opened": 1,
  "task.created": 1,
  "task.waited": 1,
  "task.woken": 1,
  "task.taken": 1,
  "task.prepared": 1,
  "task.prompted": 1,
  "task.turn-ended": 1,
  "task.progressed": 1,
  "task.claimed": 1,
  "task.hop-due": 1,
  "task.hopped": 1,
  "task.hop-refused": 1,
  "task.checking": 1,
  "task.checked": 1,
  "task.verified": 1,
  "task.rejected": 1,
  "task.merged": 1,
  "task.paused": 1,
  "task.resumed": 1,
  "task.changed": 1,
  "task.budget-warned": 1,
  "task.stalled": 1,
  "task.recovered": 1,
  "task.stall-acted": 1,
  "task.failed": 1,
  "task.retried": 1,
  "task.cancelled": 1,
  "task.contest-opened": 1,
  "task.contest-picked": 1,
  "task.contest-ended": 1,
  "task.undone": 1,
  "task.archived": 1,
  "task.deleted": 1,
  "notification.queued": 1,
  "notification.tried": 1,
  "notification.redelivered": 1,
  "notification.read": 1,
  "worker.joined": 1,
  "worker.drained": 1,
  "worker.fenced": 1,
  "worker.left": 1,
};

/**
 * For a body whose hash has been checked: Heddle itself wrote it, with its shape checked by the compiler, so the shape is
 * not checked again. That would cost more than all the rest of reading an event.
 */
export function upcast(stored: unknown, steps: Upcasters = STEPS): EventBody {
  const body = walk(stored, steps);
  if (isCurrent(body)) return body;
  throw new HeddleError("store.damaged", `a stored ${body.type} v${body.v} cannot be read by any version`);
}

/** Up to the newest version that steps lead to; what a newer Heddle wrote is refused. */
function walk(stored: unknown, steps: Upcasters): Versioned {
  let body = asBody(stored);
  for (;;) {
    const step = steps[body.type]?.[body.v];
    if (step === undefined) break;
    const next = asBody(step(body));
    if (next.type === body.type && next.v <= body.v)
      throw new TypeError(`the upcaster of ${body.type} does not advance`);
    body = next;
  }
  if (isFromNewer(body)) {
    throw new HeddleError(
      "store.newer",
      `an event ${body.type} v${body.v} was written by a newer Heddle; update this one`,
    );
  }
  return body;
}

interface Versioned extends Body {
  readonly type: string;
  readonly v: number;
}

function asBody(value: unknown): Versioned {
  if (isVersioned(value)) return value;
  throw new HeddleError("store.damaged", "a stored event has no type and version");
}

function isVersioned(value: unknown): value is Versioned {
  return (
    typeof value === "object" &&
    value !== null &&
    "type" in value &&
    typeof value.type === "string" &&
    "v" in value &&
    typeof value.v === "number"
  );
}

const NEWEST: ReadonlyMap<string, number> = new Map(Object.entries(EVENT_VERSIONS));

function isFromNewer(body: Versioned): boolean {
  return body.v > (NEWEST.get(body.type) ?? 0);
}

function isCurrent(body: Versioned | EventBody): body is EventBody {
  return body.v === NEWEST.get(body.type);
}
