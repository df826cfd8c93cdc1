/** Where a task stands, read from its own stream: what an attempt continues with, whichever worker began it. */
import type { Journal } from "@heddle/journal";
import {
  isObstructed,
  type EventOf,
  type PromptReason,
  type StoredEvent,
  type TaskBaseline,
  type TaskRecord,
} from "@heddle/protocol";

export interface Past {
  readonly baselines: readonly TaskBaseline[];
  readonly next: Step;
}

export type Step =
  | { readonly kind: "turn" }
  | { readonly kind: "hop" }
  | { readonly kind: "check"; readonly claim: Pick<EventOf<"task.claimed">, "by" | "summary"> }
  | { readonly kind: "prompt"; readonly why: PromptReason };

/** Enough of the newest events, unless the harness was restarted more often than that during one step. */
const FIRST_LOOK = 16;

/** From the marks of the stream: the cost does not grow with its length. */
export async function readPast({ marks }: Pick<Journal, "marks">, task: TaskRecord): Promise<Past> {
  const stream = task.id;
  const baselines = baselinesIn(await marks.events({ stream, kinds: ["task.baseline"], name: "" }));
  for (let newest = FIRST_LOOK; ; newest *= 4) {
    const steps = await marks.events({ stream, kinds: ["task.step"], name: "", newest });
    const next = nextStep(task, steps);
    if (next !== undefined || steps.length < newest) return { baselines, next: next ?? prompt("first") };
  }
}

/** The first one. */
export function baselineIn(events: readonly StoredEvent[]): TaskBaseline | undefined {
  return baselinesIn(events)[0];
}

/**
 * Oldest first; a further one was taken where the copy of the first does not exist, which may be another machine. One
 * without a copy of the workspace is dropped when the user retries.
 */
function baselinesIn(events: readonly StoredEvent[]): readonly TaskBaseline[] {
  let found: TaskBaseline[] = [];
  for (const { body } of events) {
    if (body.type === "task.prepared" && body.baseline !== undefined) found.push(body.baseline);
    if (body.type === "task.retried" && body.attempt === undefined && found[0]?.kept === undefined) found = [];
  }
  return found;
}

/** undefined: these events do not tell. */
function nextStep(task: TaskRecord, events: readonly StoredEvent[]): Step | undefined {
  if (task.openPrompt !== undefined) return { kind: "turn" };
  /** The reason of the next prompt, unless an older event has a better one. */
  let why: PromptReason = "restarted";
  let isAccepted = false;
  for (const { body } of events.toReversed()) {
    switch (body.type) {
      case "task.claimed":
        return body.by === "user" ? prompt(why) : { kind: "check", claim: { by: body.by, summary: body.summary } };
      case "task.checked":
        // In review, and resumed without being accepted: the agent continues, unless only the delivery was obstructed.
        if (body.review === undefined || isObstructed(body.review)) continue;
        if (why === "resumed" && !isAccepted) return prompt("resumed");
        continue;
      case "task.rejected":
        return prompt(why === "resumed" ? why : "rejected");
      case "task.resumed":
        why = "resumed";
        isAccepted ||= body.deliver !== undefined;
        continue;
      case "task.retried":
        if (body.isFresh === true) return prompt("first");
        if (body.class !== undefined || body.attempt === undefined) return prompt("retry");
        continue;
      case "task.failed":
      case "task.cancelled":
        return prompt("retry");
      case "task.hop-due":
        return { kind: "hop" };
      case "task.hop-refused":
        // The user may have done what was missing, or allowed it.
        return why === "resumed" ? { kind: "hop" } : prompt("hop-refused");
      case "task.hopped":
        return prompt("hopped");
      case "task.turn-ended":
        return prompt(why);
      case "task.created":
        return prompt("first");
      default:
        continue;
    }
  }
  return undefined;
}

function prompt(why: PromptReason): Step {
  return { kind: "prompt", why };
}
