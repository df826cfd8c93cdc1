/**
 * What a state of a task looks like and says: one table for the page and for the terminal, so that both say the same. The
 * glyph and the word stand together everywhere, never a colour alone; only `verified` has the tone that is drawn green.
 */
import type { PromptReason } from "../events/task-events.ts";
import { counted } from "../text/counted.ts";
import { TASK_STATES, type TaskState } from "./task-record.ts";

export { TASK_STATES, type TaskState };

/** `proven` is green, `said` amber (a word without proof), `refused` red, `yours` the accent; the others are grey. */
export type Tone = "proven" | "said" | "refused" | "yours" | "plain" | "quiet";
export type Glyph =
  | "verified"
  | "claimed"
  | "rejected"
  | "failed"
  | "stalled"
  | "ask"
  | "paused"
  | "running"
  | "clock"
  | "after"
  | "queued"
  | "off";

export interface StateWords {
  readonly glyph: Glyph;
  readonly tone: Tone;
  /** Two or three words for a list. */
  readonly word: string;
}

/** As far as its name alone says; `wordsOf` says more of a task that is known. */
export const STATE_WORDS: Readonly<Record<TaskState, StateWords>> = {
  pending: { glyph: "queued", tone: "quiet", word: "in the queue" },
  waiting: { glyph: "clock", tone: "quiet", word: "waits" },
  running: { glyph: "running", tone: "plain", word: "running" },
  claimed: { glyph: "claimed", tone: "said", word: "claimed, not verified" },
  rejected: { glyph: "rejected", tone: "refused", word: "rejected" },
  stalled: { glyph: "stalled", tone: "said", word: "hangs" },
  paused: { glyph: "paused", tone: "plain", word: "paused" },
  verified: { glyph: "verified", tone: "proven", word: "verified" },
  failed: { glyph: "failed", tone: "refused", word: "failed" },
  cancelled: { glyph: "off", tone: "quiet", word: "cancelled" },
  archived: { glyph: "off", tone: "quiet", word: "archived" },
};

/** What is known of a task by whoever shows it; a list knows less than a record. */
export interface TaskStanding {
  readonly id?: string;
  readonly state: TaskState;
  readonly stateBefore?: TaskState | undefined;
  readonly hasEnded?: boolean | undefined;
  readonly reason?: string | undefined;
  readonly wait?: { readonly cause: string; readonly message: string } | undefined;
  readonly nextAt?: number | undefined;
  readonly stall?: { readonly message?: string | undefined } | undefined;
  readonly claim?: { readonly by: string } | undefined;
  readonly pause?: { readonly cause: string } | undefined;
  readonly failure?: { readonly code: string } | undefined;
  readonly undone?: unknown;
  readonly round?: number | undefined;
  readonly lastCheck?:
    | {
        readonly round: number;
        readonly results: readonly { readonly name: string; readonly outcome: string }[];
        readonly violations: readonly { readonly message: string }[];
        readonly opinion?: { readonly accepts: boolean; readonly reason: string } | undefined;
        readonly review?: unknown;
      }
    | undefined;
}

/** What ran out, or who paused it, in two words. */
const PAUSE_WORDS: Readonly<Record<string, Partial<StateWords>>> = {
  budget: { word: "budget used up" },
  nudges: { glyph: "rejected", tone: "refused", word: "rejected too often" },
  stall: { word: "paused after a stall" },
  question: { glyph: "ask", tone: "yours", word: "asks" },
  review: { glyph: "ask", tone: "yours", word: "asks you to decide" },
  fault: { word: "paused after a fault" },
};

export function wordsOf(task: TaskStanding): StateWords {
  const words = STATE_WORDS[task.state];
  switch (task.state) {
    case "waiting":
      return waitingWords(task, words);
    case "paused":
      return { ...words, ...(isPutToOwner(task) ? PAUSE_WORDS["review"] : PAUSE_WORDS[task.pause?.cause ?? ""]) };
    case "archived":
      return { ...words, word: `archived, ${STATE_WORDS[task.stateBefore ?? "cancelled"].word} before` };
    default:
      return words;
  }
}

function waitingWords({ wait }: TaskStanding, words: StateWords): StateWords {
  switch (wait?.cause) {
    case "approval":
      return { glyph: "ask", tone: "yours", word: "waits for you" };
    case "dependency":
      return { ...words, glyph: "after", word: "after another" };
    case "contest":
      return { ...words, word: "waits for contestants" };
    case "workspace":
      return { ...words, word: "waits for its folder" };
    case "schedule":
      return { ...words, word: "waits for its time" };
    case "backoff":
    case "provider":
      return { ...words, word: "tries again later" };
    default:
      return words;
  }
}

/** The sentence beside the word: what its state alone does not say; it may be nothing. */
export function standingOf(task: TaskStanding, timeText: (ms: number) => string): string {
  switch (task.state) {
    case "verified":
      return `${counted(task.lastCheck?.results.length ?? 0, "check")} passed${task.undone === undefined ? "" : "; its workspace has been reverted since"}`;
    case "claimed":
      if (task.hasEnded === false) return "not verified yet";
      return task.claim?.by === "user"
        ? "NOT verified: the user marked it as done"
        : "NOT verified: it has no checks that could";
    case "failed":
      return `${task.failure === undefined ? "" : `${task.failure.code}: `}${task.reason ?? "no reason is known"}`;
    case "paused":
      return isPutToOwner(task) ? "its work waits for your decision" : (task.reason ?? "by the user");
    case "cancelled":
      return task.reason ?? "by the user";
    case "waiting":
      return `${task.wait?.message ?? "for something to happen"}${task.nextAt === undefined ? "" : `, next at ${timeText(task.nextAt)}`}`;
    case "stalled":
      return task.stall?.message ?? "no progress";
    case "rejected":
      return failingOf(task).join(", ") || "no check passed that proves the work";
    case "archived":
      return `${task.stateBefore ?? "cancelled"} before`;
    case "pending":
    case "running":
      return task.undone === undefined ? "" : "its workspace was reverted";
  }
}

/** Its checks passed, and yet it is the owner's to decide. */
export function isPutToOwner({ state, lastCheck, round }: TaskStanding): boolean {
  return state === "paused" && lastCheck?.review !== undefined && lastCheck.round === round;
}

/** What speaks against the work, by its own names. */
export function failingOf({ lastCheck }: TaskStanding): readonly string[] {
  const { results = [], violations = [], opinion } = lastCheck ?? {};
  return [
    ...results.filter(({ outcome }) => outcome !== "passed").map(({ name }) => name),
    ...violations.map(({ message }) => message),
    ...(opinion?.accepts === false ? [`second opinion: ${opinion.reason}`] : []),
  ];
}

/** Why a turn began, and who began it: the harness's own turns are never shown as the user's. */
export const PROMPT_WORDS: Readonly<Record<PromptReason, string>> = {
  first: "started by the harness, the goal",
  rejected: "started by the harness, because checks did not pass",
  continue: "started by the harness, because the agent stopped without saying that it is done",
  restarted: "started by the harness, to continue where it stopped",
  resumed: "started by the harness, because the user resumed it",
  retry: "started by the harness, to try again",
  stall: "started by the harness, after a stall",
  user: "started by the user",
  hopped: "started by the harness, in the next envelope",
  "hop-refused": "started by the harness, because the next envelope may not be entered yet",
};
