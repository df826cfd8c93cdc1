/**
 * What an agent reports of its own work in one turn: a call of its report tool, a marker in its last message, or only that
 * it stopped. A claim is never believed; it starts the checks.
 */
import type { EventOf, StoredEvent } from "@heddle/protocol";

export interface AgentClaim {
  readonly kind: "done" | "blocked" | "progress";
  readonly by: EventOf<"task.claimed">["by"];
  readonly summary: string;
  readonly stepsDone: readonly number[];
}

const REPORT_TOOL = "task_report";

/** On a line of its own: in a sentence it is not a claim. */
const COMPLETE = /^[\s>*_#`-]*TASK (?:COMPLETE|DONE)[\s*_`.!]*$/m;
const STEP_DONE = /^[\s>*_#`-]*STEP (?:DONE:?\s*(\d{1,4})|(\d{1,4}) DONE)\b/gm;
const MAX_SUMMARY = 2000;

/** `steps`: how many there are; higher numbers are ignored. */
export function claimIn(events: readonly StoredEvent[], turnId: string, steps: number): AgentClaim {
  const own = events.filter(({ body }) => "turnId" in body && body.turnId === turnId);
  const reports = reportsIn(own);
  const text = lastText(own);
  const marked = [...text.matchAll(STEP_DONE)].map(([, after, before]) => Number(after ?? before));
  const stepsDone = [...new Set([...reports.flatMap((report) => report.stepsDone), ...marked])]
    .filter((step) => step >= 1 && step <= steps)
    .toSorted((a, b) => a - b);
  const last = reports.at(-1);
  if (last !== undefined) return { ...last, by: "report", stepsDone };
  const summary = text.slice(-MAX_SUMMARY);
  return { kind: "done", by: COMPLETE.test(text) ? "marker" : "turn-end", summary, stepsDone };
}

/** Calls that succeeded, in order; their arguments fit the tool's schema. */
function reportsIn(own: readonly StoredEvent[]): Omit<AgentClaim, "by">[] {
  const intents = new Map<string, unknown>();
  const reports: Omit<AgentClaim, "by">[] = [];
  for (const { body } of own) {
    if (body.type === "tool.intended" && body.tool === REPORT_TOOL) intents.set(body.itemId, body.arguments);
    if (body.type !== "tool.settled" || body.tool !== REPORT_TOOL || body.outcome !== "ok") continue;
    const report = toReport(intents.get(body.itemId));
    if (report !== undefined) reports.push(report);
  }
  return reports;
}

function toReport(given: unknown): Omit<AgentClaim, "by"> | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const { status, summary, steps_done: steps } = Object.fromEntries(Object.entries(given));
  if (status !== "done" && status !== "blocked" && status !== "progress") return undefined;
  const stepsDone = Array.isArray(steps) ? steps.filter((step) => typeof step === "number") : [];
  return { kind: status, summary: typeof summary === "string" ? summary.slice(0, MAX_SUMMARY) : "", stepsDone };
}

function lastText(own: readonly StoredEvent[]): string {
  let text = "";
  for (const { body } of own)
    if (body.type === "item.completed" && body.item.type === "agentMessage") ({ text } = body.item);
  return text;
}
