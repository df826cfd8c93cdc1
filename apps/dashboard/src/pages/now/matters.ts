/** What needs a person, from what the server says: who waits, what has stopped, what is wrong with Heddle itself. */
import type { Approval, StateAnswer, TaskSummary } from "@heddle/protocol/http";
import { wordsOf, type Glyph, type Tone } from "@heddle/protocol/task-words";
import { line } from "../../text/shown.ts";
import { cost, folderName, tokens } from "../../words/figures.ts";
import { questionWords } from "../../words/questions.ts";

export type Band = "you" | "stopped" | "heddle";
export const BANDS: Readonly<Record<Band, string>> = {
  you: "An agent waits for you",
  stopped: "Stopped, and will not continue by itself",
  heddle: "About Heddle itself",
};

export interface Matter {
  readonly id: string;
  readonly band: Band;
  readonly glyph: Glyph | "bell";
  readonly tone: Tone;
  /** The matter as a sentence; `strong` is what it turns on. */
  readonly before?: string;
  readonly strong: string;
  readonly after?: string;
  readonly exact?: readonly string[];
  readonly quote?: string;
  /** Where it leads. */
  readonly to?: string;
  readonly name: string;
  readonly facts: readonly string[];
  readonly at: number;
  readonly of:
    | { readonly kind: "approval"; readonly approval: Approval; readonly task: TaskSummary | undefined }
    | { readonly kind: "task"; readonly task: TaskSummary }
    | { readonly kind: "stall"; readonly task: TaskSummary }
    | { readonly kind: "sink"; readonly sink: string }
    | { readonly kind: "worker" };
}

export interface Seen {
  readonly state: StateAnswer;
  readonly approvals: readonly Approval[];
  readonly stopped: readonly TaskSummary[];
}

export function mattersOf({ state, approvals, stopped }: Seen): readonly Matter[] {
  const known = [...state.tasks, ...stopped];
  const you = [
    ...approvals.map((approval) =>
      asked(
        approval,
        known.find(({ threadId }) => threadId === approval.threadId),
      ),
    ),
    ...state.stalls.map(stalled),
    ...stopped.filter(isForYou).map(stoppedTask),
  ].toSorted((a, b) => a.at - b.at);
  const rest = stopped
    .filter((task) => !isForYou(task) && !isUnderWay(task))
    .map(stoppedTask)
    .toSorted((a, b) => b.at - a.at);
  return [...you, ...rest, ...aboutHeddle(state)];
}

function isForYou(task: TaskSummary): boolean {
  return task.state === "paused" && wordsOf(task).tone === "yours";
}

/** Between two turns: the harness judges it or prompts again by itself. */
function isUnderWay({ state, checks, claim }: TaskSummary): boolean {
  return state === "rejected" || (state === "claimed" && checks.all > 0 && claim?.by !== "user");
}

function asked(approval: Approval, task: TaskSummary | undefined): Matter {
  const words = questionWords(approval.question);
  const { question } = approval;
  const text =
    question.kind === "userInput" ? `“${line(question.questions.map((one) => one.question).join(" "))}”` : undefined;
  return {
    id: approval.id,
    band: "you",
    glyph: "ask",
    tone: "yours",
    before: text ?? words.before,
    strong: text === undefined ? words.strong : "",
    after: text === undefined ? words.after : "",
    exact: words.exact,
    ...(words.reason === undefined || text !== undefined ? {} : { quote: words.reason }),
    to: approval.taskId === undefined ? `/threads/${approval.threadId}` : `/tasks/${approval.taskId}`,
    name: line(approval.taskName ?? `thread ${approval.threadId.slice(0, 8)}`),
    facts: [
      ...(approval.taskId === undefined ? ["a thread, no task"] : []),
      ...(task === undefined ? [] : [line(folderName(task.workspace))]),
    ],
    at: approval.askedAt,
    of: { kind: "approval", approval, task },
  };
}

function stalled(task: StateAnswer["stalls"][number]): Matter {
  const culprit = task.stall.culprits[0];
  return {
    id: `stall:${task.id}:${task.stall.episode}`,
    band: "you",
    glyph: "stalled",
    tone: "said",
    strong: "Hangs.",
    after: ` ${line(task.stall.message)}`,
    to: `/tasks/${task.id}`,
    name: line(task.name),
    facts: [line(folderName(task.workspace)), ...(culprit === undefined ? [] : [`pid ${culprit.pid}`])],
    at: task.stall.since,
    of: { kind: "stall", task },
  };
}

function stoppedTask(task: TaskSummary): Matter {
  const words = wordsOf(task);
  const text = stoppedText(task);
  return {
    id: `task:${task.id}:${task.state}:${task.updatedAt}`,
    band: isForYou(task) ? "you" : "stopped",
    glyph: words.glyph,
    tone: words.tone,
    ...text,
    to: `/tasks/${task.id}`,
    name: line(task.name),
    facts: [line(folderName(task.workspace)), spentText(task)],
    at: task.updatedAt,
    of: { kind: "task", task },
  };
}

function stoppedText(task: TaskSummary): Pick<Matter, "strong" | "after"> {
  const word = wordsOf(task).word;
  const title = `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  const reason = task.reason === undefined ? "" : line(task.reason);
  switch (task.state) {
    case "claimed":
      return { strong: "Claimed, not verified:", after: claimText(task) };
    case "failed":
      return { strong: "Failed.", after: ` ${reason}` };
    default:
      return { strong: `${title}.`, after: ` ${reason}${checkedText(task)}` };
  }
}

function claimText({ checks, claim }: TaskSummary): string {
  const why = claim?.by === "user" ? " by a person's word" : checks.all === 0 ? " it has no checks" : "";
  return `${why}${claim === undefined || claim.summary === "" ? "" : `. “${line(claim.summary)}”`}`;
}

/** What the checks said last: why it is not done. */
function checkedText({ checks }: TaskSummary): string {
  if (checks.at === undefined) return "";
  if (checks.violations > 0) return `; ${checks.violations} violations of protected files or tests`;
  return checks.failed + checks.errors === 0
    ? ""
    : `; ${checks.failed + checks.errors} of ${checks.all} checks did not pass`;
}

export function spentText({ spent }: Pick<TaskSummary, "spent">): string {
  if (spent.turns === 0 && spent.tokens === 0) return "nothing spent";
  return `${tokens(spent.tokens)} tokens, ${cost({ known: spent.costUsd, isPartial: spent.isCostPartial })}`;
}

function aboutHeddle(state: StateAnswer): readonly Matter[] {
  const waiting = state.counts.pending ?? 0;
  const worker: readonly Matter[] =
    state.config.carriesOutTasks || waiting === 0
      ? []
      : [
          {
            id: "worker",
            band: "heddle",
            glyph: "paused",
            tone: "plain",
            strong: "Nobody carries out tasks here.",
            after: ` ${waiting} wait; start heddle watch, or heddle serve without --no-tasks`,
            name: "the queue",
            to: "/tasks?state=pending",
            facts: [],
            at: state.now,
            of: { kind: "worker" },
          },
        ];
  const sinks = state.sinks
    .filter(({ dead }) => dead > 0)
    .map((sink): Matter => ({
      id: `sink:${sink.name}:${sink.dead}`,
      band: "heddle",
      glyph: "bell",
      tone: "refused",
      strong: `${line(sink.name)} does not hear everything.`,
      after: ` ${sink.dead} could not be delivered, ${sink.queued} wait, ${sink.delivered} arrived`,
      name: line(sink.name),
      to: "/settings/sinks",
      facts: [sink.kind, line(sink.target)],
      at: state.now,
      of: { kind: "sink", sink: sink.name },
    }));
  return [...worker, ...sinks];
}
