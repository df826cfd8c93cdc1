/** What happens to a task, as lines for people. Who started a turn and why is always said; only `verified` is green. */
import {
  type CheckResult,
  counted,
  type EventOf,
  type StoredEvent,
  type TaskEventBody,
  visibleLine,
} from "@heddle/protocol";
import { PROMPT_WORDS } from "@heddle/protocol/task-words";
import type { JudgedWork } from "@heddle/protocol/tasks";
import { quoted } from "../print/screen.ts";
import { duration, money, type Style } from "../print/style.ts";
import { flags, listed, restsLine, reviewLines, workLines } from "./work-lines.ts";

export const ROOMS: Readonly<Record<EventOf<"task.checking">["room"], string>> = {
  baseline: "as it is before the work",
  work: "on the frozen work",
  delivered: "on the deliverables alone",
  again: "once more: it may be flaky",
};

const CLAIMED_BY: Readonly<Record<EventOf<"task.claimed">["by"], string>> = {
  report: "the agent reported that it is done",
  marker: "the agent's message says that it is done",
  "turn-end": "the turn ended",
  user: "the user marked it as done",
  contest: "the contestant that was picked reported it",
};

/** Without the name of the task; lines after the first are indented, or stand in the gutter when others wrote them. */
export function taskLines({ body }: StoredEvent<TaskEventBody>, style: Style): readonly string[] {
  switch (body.type) {
    case "task.created":
      return [`added: ${visibleLine(body.spec.name)} in ${visibleLine(body.spec.workspace)}`];
    case "task.waited":
      return [style.yellow(`waits (${body.cause}): ${visibleLine(body.message)}`)];
    case "task.woken":
      return ["no longer waiting"];
    case "task.taken":
      return [`attempt ${body.attempt}`];
    case "task.prepared":
      return prepared(body, style);
    case "task.prompted":
      return [style.bold(`turn ${body.round}: ${PROMPT_WORDS[body.why]}`)];
    case "task.turn-ended":
      return [turnEnded(body, style)];
    case "task.progressed":
      return [`steps reported as done: ${body.stepsDone.join(", ")}`];
    case "task.claimed":
      return [style.yellow(`claimed, not verified: ${CLAIMED_BY[body.by]}${summaryText(body.summary)}`)];
    case "task.checked":
      return checked(body, style);
    case "task.verified":
      return [style.verified("VERIFIED: every check passed")];
    case "task.rejected":
      return [
        style.red(`rejected: ${body.failing.map(visibleLine).join(", ") || "no check passed that proves the work"}`),
      ];
    case "task.merged":
      return [`merged as ${body.how}: ${visibleLine(body.ref)}`];
    default:
      return [other(body, style)];
  }
}

type Other = Exclude<
  TaskEventBody,
  {
    type: `task.${"created" | "waited" | "woken" | "taken" | "prepared" | "prompted" | "turn-ended" | "progressed" | "claimed" | "checked" | "verified" | "rejected" | "merged"}`;
  }
>;

function other(body: Other, style: Style): string {
  switch (body.type) {
    case "task.paused":
      return style.yellow(`paused (${body.cause}): ${visibleLine(body.message)}`);
    case "task.resumed":
      if (body.deliver !== undefined) return `the user accepted as the work: ${listed(body.deliver.map(visibleLine))}`;
      return [
        `resumed${body.budget === undefined ? "" : ` with more: ${JSON.stringify(body.budget)}`}`,
        ...(body.input === undefined ? [] : [`with the answer: ${visibleLine(body.input)}`]),
      ].join(", ");
    case "task.budget-warned":
      return style.yellow(`its budget of ${body.what} is nearly used: ${body.spent} of ${body.limit}`);
    case "task.stalled":
      return style.yellow(`stalled: ${visibleLine(body.message)}`);
    case "task.recovered":
      return "running again";
    case "task.stall-acted":
      return `${body.action}: ${visibleLine(body.message)}`;
    case "task.failed":
      return style.red(`failed (${body.failure.code}): ${visibleLine(body.failure.message)}`);
    case "task.retried":
      return `another attempt: ${visibleLine(body.reason)}`;
    case "task.cancelled":
      return style.yellow(`cancelled: ${visibleLine(body.reason)}`);
    case "task.hop-due":
      return style.dim(`the part before ${visibleLine(body.to)} is reported as done${summaryText(body.summary)}`);
    case "task.hopped":
      return `in the envelope ${visibleLine(body.to)} now`;
    case "task.hop-refused":
      return style.yellow(`not in the envelope ${visibleLine(body.to)} yet: ${visibleLine(body.failure.message)}`);
    case "task.checking":
      return style.dim(`runs ${visibleLine(body.name)} ${ROOMS[body.room]}`);
    case "task.contest-opened":
      return `contest: ${body.contestants.map(({ number, name }) => `${number} ${visibleLine(name)}`).join(", ")}`;
    case "task.contest-picked":
      return style.bold(`picked contestant ${body.number}: ${visibleLine(body.reason)}`);
    case "task.contest-ended":
      return `the contest ended: ${body.number === undefined ? "" : `contestant ${body.number}, `}${visibleLine(body.reason)}`;
    case "task.changed":
      return `changed: ${changesText(body)}`;
    case "task.undone":
      return `the workspace was reverted: ${counted(body.files, "file")}`;
    case "task.archived":
      return body.isArchived ? "archived" : "restored from the archive";
    case "task.deleted":
      return "deleted";
  }
}

function changesText({ name, labels, priority, budget = {} }: EventOf<"task.changed">): string {
  const parts = [
    ...(name === undefined ? [] : [`its name is ${visibleLine(name)}`]),
    ...(labels === undefined ? [] : [`labels ${labels.length === 0 ? "none" : labels.map(visibleLine).join(", ")}`]),
    ...(priority === undefined ? [] : [`priority ${priority}`]),
    ...Object.entries(budget).map(([what, limit]) => `at most ${limit} ${what}`),
  ];
  return parts.join(", ");
}

function prepared({ folder, threadId, baseline }: EventOf<"task.prepared">, style: Style): readonly string[] {
  const early = (baseline?.passed ?? []).map(visibleLine).join(", ");
  return [
    style.dim(`works in ${visibleLine(folder)}, thread ${threadId}`),
    ...(early === "" ? [] : [style.yellow(`passed before the work, so it proves nothing: ${early}`)]),
  ];
}

function turnEnded({ status, usage, costUsd, durationMs, failure }: EventOf<"task.turn-ended">, style: Style): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  const text = `turn ${status}, ${duration(durationMs)}, ${tokens} tokens, ${money(costUsd)}`;
  if (failure === undefined) return style.dim(text);
  return style.red(`${text}: ${visibleLine(failure.message)}`);
}

const SHOWN_LINES = 8;

function checked(
  { results, violations, opinion, work, review }: EventOf<"task.checked">,
  style: Style,
): readonly string[] {
  const passed = results.filter(({ outcome }) => outcome === "passed").length;
  return [
    `the harness ran ${counted(results.length, "check")}: ${passed} passed`,
    ...results.flatMap((result) => checkLines(result, style, work)),
    ...workLines(work, style),
    ...violations.map(({ message }) => style.red(`  VIOLATION ${visibleLine(message)}`)),
    ...(opinion === undefined
      ? []
      : [
          `  ${visibleLine(opinion.model)} ${opinion.accepts ? "agrees" : style.red("REJECTS")}: ${visibleLine(opinion.reason)}`,
        ]),
    ...reviewLines(review, style),
  ];
}

/** A pass is plain: only the whole is verified. */
export function checkLines(result: CheckResult, style: Style, work?: JudgedWork): readonly string[] {
  const { name, outcome, message, output, isFlaky } = result;
  const text = `${visibleLine(name)}: ${visibleLine(message)}`;
  if (outcome === "passed") return [`  passed ${text}${flags(result, style)}`, ...restsLine(result, work)];
  const tail = (output ?? "").trimEnd().split("\n").slice(-SHOWN_LINES);
  const said = tail.filter((line) => line.trim() !== "").join("\n");
  const shown = said === "" ? [] : quoted(said).map((line) => style.dim(line));
  return [
    style.red(`  ${outcome === "failed" ? "FAILED" : "ERROR"} ${text}`) +
      (isFlaky === true ? flags(result, style) : ""),
    ...shown,
  ];
}

function summaryText(summary: string): string {
  return summary === "" ? "" : `: ${visibleLine(summary.length > 300 ? `${summary.slice(0, 297)}…` : summary)}`;
}
