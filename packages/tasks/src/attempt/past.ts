/** Where a task stands, read from its own stream: what an attempt goes on with, whoever began it. */
import {
  isObstructed,
  type EventOf,
  type PromptReason,
  type StoredEvent,
  type TaskBaseline,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";

export interface Past {
  /** As it was taken before the first prompt. */
  readonly baseline: TaskBaseline | undefined;
  readonly next: Step;
}

export type Step =
  | { readonly kind: "turn" }
  | { readonly kind: "check"; readonly claim: Pick<EventOf<"task.claimed">, "by" | "summary"> }
  | { readonly kind: "prompt"; readonly why: PromptReason };

export function pastOf(task: TaskRecord, log: readonly StoredEvent<TaskEventBody>[]): Past {
  const bodies = log.map(({ body }) => body);
  return { baseline: baselineIn(bodies), next: nextStep(task, bodies) };
}

/** The first there is. One without a copy of the workspace is of no use when a user has it tried again. */
function baselineIn(bodies: readonly TaskEventBody[]): TaskBaseline | undefined {
  let found: TaskBaseline | undefined;
  for (const body of bodies) {
    if (body.type === "task.prepared") found ??= body.baseline;
    if (body.type === "task.retried" && body.attempt === undefined && found?.kept === undefined) found = undefined;
  }
  return found;
}

function nextStep(task: TaskRecord, bodies: readonly TaskEventBody[]): Step {
  if (task.openPrompt !== undefined) return { kind: "turn" };
  /** What the next prompt is about, unless something before it tells better. */
  let why: PromptReason = "restarted";
  let isAccepted = false;
  for (const body of bodies.toReversed()) {
    switch (body.type) {
      case "task.claimed":
        return body.by === "user" ? prompt(why) : { kind: "check", claim: { by: body.by, summary: body.summary } };
      // Results without a verdict: the checks are run again.
      case "task.checked":
        // Put to the owner, who had it resumed without accepting it: the agent goes on, unless its work is fine as it is.
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
      case "task.turn-ended":
        return prompt(why);
      case "task.created":
        return prompt("first");
      default:
        continue;
    }
  }
  return prompt("first");
}

function prompt(why: PromptReason): Step {
  return { kind: "prompt", why };
}
