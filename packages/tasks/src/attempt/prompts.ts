/** The prompts of the harness: the order, what is demanded, and what was found. */
import { isObstructed, never, type CheckResult, type PromptReason, type TaskRecord } from "@heddle/protocol";
import type { TaskCheck, TaskSpec, WorkReview } from "@heddle/protocol/tasks";
import { rulesText } from "../judge/protected.ts";
import { lastHop } from "./planned-hops.ts";

/** A check that prints a lot must not push the goal out of the context. */
const MAX_OUTPUT = 4000;
const MAX_ALL_OUTPUT = 16_000;
const MAX_UNJUDGED = 20;

export function promptText(task: TaskRecord, why: PromptReason): string {
  const { userInput } = task;
  // The user's own words come first, and whole.
  return userInput === undefined ? promptFor(task, why) : `${userInput}\n\n${promptFor(task, why)}`;
}

function promptFor(task: TaskRecord, why: PromptReason): string {
  switch (why) {
    case "first":
      return order(task);
    case "rejected":
      return `${rejection(task)}\n\nFix the work itself, not the checks. ${ENDING}`;
    case "continue":
      return `The task is not done yet, by your own report. Continue without asking for confirmation. ${ENDING}`;
    case "restarted":
      return `Heddle was restarted while you worked. Look at the current state before you continue: a command may have run whose result you have not seen. Then continue with the task. ${ENDING}`;
    case "resumed":
      return `The task was paused and is resumed now.${isOpen(task) ? `\n\n${rejection(task)}` : ""}\n\nContinue with it. ${ENDING}`;
    case "retry":
      // When the owner sends work back, the agent is told why: nothing in its own tree shows the obstacle.
      return `The last attempt did not finish. ${isSentBack(task) ? `${rejection(task)}\n\n` : ""}Look at the current state, and continue with the task. ${ENDING}`;
    case "stall":
      return `Your last command made no progress and was stopped${task.stall === undefined ? "" : `: ${task.stall.message}`}. Try another way: a command that waits for input or never ends will be stopped again. ${ENDING}`;
    case "hopped":
      return `${hopText(task)} ${ENDING}`;
    case "hop-refused":
      return `The task continues in the next envelope as soon as its guards are met, and they are not yet: ${task.hops?.refused ?? "it was refused"}. Do what is missing. ${ENDING}`;
    case "user":
      return order(task);
    default:
      return never(why);
  }
}

const ENDING =
  'When you believe it is done call task_report with status "done" (without that tool write TASK COMPLETE on a line of its own); if you cannot continue without the user, call it with status "blocked" and your question.';

/** After a hop of the spec. */
function hopText(task: TaskRecord): string {
  const { to, carry, prompt = "Continue with the task there." } = lastHop(task) ?? { to: "", carry: undefined };
  const carried = carry === undefined ? "" : ` Carried along: ${JSON.stringify(carry)}.`;
  return `You are in the envelope ${to} now; your tools and limits are those of this envelope.${carried} ${prompt}`;
}

function order({ spec, hops }: TaskRecord): string {
  const { name, goal, steps, acceptance, checks } = spec;
  const left = (spec.hops ?? []).slice(hops?.taken ?? 0);
  return [
    `# Task: ${name}`,
    goal,
    ...(steps.length === 0 ? [] : [["## Steps", ...steps.map(stepLines)].join("\n")]),
    ...(acceptance.length === 0 ? [] : [["## Accepted when", ...acceptance.map((line) => `- ${line}`)].join("\n")]),
    ...(left.length === 0 ? [] : [partText(left)]),
    ...(checks.length === 0
      ? []
      : [["## Checks that Heddle runs on the files when you are done", ...checks.map(checkLine)].join("\n")]),
    [
      "Work without asking for confirmation.",
      checks.length === 0 ? "" : "What decides is what the checks find, not what you say.",
      rulesText(spec),
      steps.length === 0 ? "" : "Name the steps that are done in task_report as steps_done (or write STEP DONE: n).",
      ENDING,
    ]
      .filter((line) => line !== "")
      .join(" "),
  ].join("\n\n");
}

function partText(left: NonNullable<TaskSpec["hops"]>): string {
  const names = left.map(({ to }) => to).join(", then ");
  return `This is the first part of the task: do what the envelope you are in allows, and report "done" when that is finished. Heddle then takes you into the next envelope (${names}) and tells you what to do there.`;
}

function stepLines({ title, acceptance }: TaskSpec["steps"][number], index: number): string {
  return [`${index + 1}. ${title}`, ...acceptance.map((line) => `   - ${line}`)].join("\n");
}

function checkLine(check: TaskCheck): string {
  if (check.kind === "all" || check.kind === "any")
    return `- ${check.name ?? check.kind}: ${check.kind} of ${check.of.map(describeCheck).join("; ")}`;
  if (check.kind === "not") return `- ${check.name ?? "not"}: not ${describeCheck(check.of)}`;
  return `- ${describeCheck(check)}`;
}

/** As in the spec: models read JSON well. */
function describeCheck(check: TaskCheck): string {
  const { kind, name, ...rest } = check;
  return `${name === undefined ? "" : `${name}: `}${kind} ${JSON.stringify(rest)}`;
}

export function failing({ lastCheck }: TaskRecord): readonly CheckResult[] {
  return (lastCheck?.results ?? []).filter(({ outcome }) => outcome !== "passed");
}

function isOpen({ lastCheck }: TaskRecord): boolean {
  return lastCheck !== undefined && !lastCheck.passed;
}

function isSentBack({ lastCheck }: TaskRecord): boolean {
  return lastCheck?.review !== undefined && isObstructed(lastCheck.review);
}

/** Git can print a lot; the advice comes after it. */
const MAX_OBSTACLE = 1500;

/** More files than this are not listed. */
const MAX_IN_LINE = 200;

/** What the owner reads before deciding. */
export function reviewText(taskId: string, review: WorkReview): string {
  const { reasons, deliver } = review;
  const why = reasons.map(({ message }) => message).join("; ");
  if (isObstructed(review))
    return `the work passed its checks and could not be written to the workspace: ${why.slice(0, MAX_OBSTACLE)}. When the obstacle is removed: heddle task resume ${taskId} judges it again and delivers it, without the agent. To have the agent change its work instead: heddle task cancel ${taskId}, then heddle task retry ${taskId}; it then receives the reason`;
  if (deliver === undefined) return `${why}. heddle task accept ${taskId} accepts it as claimed, not as verified`;
  if (deliver.length > MAX_IN_LINE)
    return `${why}. If these ${deliver.length} files are the work: heddle task accept ${taskId}, or say so in the spec (deliver: [globs])`;
  const line = `deliver: [${deliver.map((path) => JSON.stringify(path)).join(", ")}]`;
  return `${why}. If these are the work: heddle task accept ${taskId}, or say so in the spec: ${line}`;
}

function rejection(task: TaskRecord): string {
  const { violations = [], opinion, review, work } = task.lastCheck ?? {};
  const unjudged = [...(work?.others ?? []), ...(work?.delivered ?? [])].flatMap(({ path, why }) =>
    why === undefined ? [] : [`- ${JSON.stringify(path)}: ${why}`],
  );
  let left = MAX_ALL_OUTPUT;
  const found = failing(task).map((result) => {
    const output = (result.output ?? "").slice(-Math.min(MAX_OUTPUT, left));
    left -= output.length;
    const fence = "`".repeat(Math.max(3, longestRun(output) + 1));
    return `- ${result.name}: ${result.message}${output === "" ? "" : `\n${fence}\n${output}\n${fence}`}`;
  });
  return [
    "The task is not done. Heddle ran its checks, and this was found:",
    ...found,
    ...violations.map(({ message }) => `- ${message}`),
    ...unjudged.slice(0, MAX_UNJUDGED),
    ...(review?.reasons ?? []).map(({ message }) => `- ${message}`),
    ...(opinion === undefined || opinion.accepts ? [] : [`- a second opinion: ${opinion.reason}`]),
  ].join("\n");
}

function longestRun(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
}
