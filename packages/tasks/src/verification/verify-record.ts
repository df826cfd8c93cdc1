/**
 * Is the record what was written, and did everything stay inside its bounds? Of all of it, of a thread, or of a task with the
 * threads of its attempts, in six levels, each of which says how much it examined. The same for the command and the doors.
 */
import type { Journal, VerifyReport, VerifyWatch } from "@heddle/journal";
import {
  examine,
  finding,
  nothingExamined,
  resultOf,
  type Code,
  type Finding,
  type Level,
  type LevelExamined,
  type Result,
} from "@heddle/journal/verification";
import { hasEnded, isHeddleError, toHeddleError } from "@heddle/protocol";
import { examineKept, runAgain } from "./kept-work.ts";
import { findSubject, type Subject } from "./subject.ts";

export interface RecordVerdict {
  readonly result: Result;
  readonly reason?: string;
  readonly report?: Omit<VerifyReport, "violations">;
  /** What each level examined. */
  readonly levels: readonly LevelExamined[];
  readonly findings: readonly Finding[];
  /** Threads and tasks that had not ended: what is stored of them was verified, and more may follow. */
  readonly running: readonly string[];
  /** Protected paths that were written, as the record tells. */
  readonly violations: readonly string[];
}

/** All that costs no more than reading; checks are run again only on request. */
export const DEFAULT_LEVEL = 5;

export interface VerifyQuestion {
  readonly home: string;
  /** A thread or a task, by its id, the beginning of it or its name; absent: the whole record. */
  readonly selector?: string | undefined;
  readonly level?: Level | undefined;
  readonly signal: AbortSignal;
  readonly onProgress?: VerifyWatch["onProgress"];
  readonly onCheck?: (name: string) => void;
}

export async function verifyRecord(journal: Journal, question: VerifyQuestion): Promise<RecordVerdict> {
  return judgeSubject(journal, await findSubject(journal, question.home, question.selector), question);
}

/** The verdict where nothing could be looked at. */
export function verdictOf(error: unknown): RecordVerdict {
  const { code, message } = toHeddleError(error);
  return isHeddleError(error) && code === "store.damaged"
    ? { ...cannot(message), result: "tampered" }
    : cannot(message);
}

export function cannot(reason: string): RecordVerdict {
  return { result: "cannotVerify", reason, levels: [], findings: [], running: [], violations: [] };
}

async function judgeSubject(
  journal: Journal,
  subject: Subject,
  { level: asked, signal, home, onProgress, onCheck = () => undefined }: VerifyQuestion,
): Promise<RecordVerdict> {
  const level = asked ?? DEFAULT_LEVEL;
  const streams = subject.kind === "all" ? undefined : subject.streams;
  const found = await examine(journal, {
    home,
    streams,
    level,
    signal,
    ...(onProgress === undefined ? {} : { onProgress }),
  });
  const [levels, findings] = [[...found.levels], [...found.findings]];
  if (subject.kind === "task" && level >= 5) {
    const kept = await examineKept(subject, { home, signal });
    levels.push(kept.level);
    findings.push(...kept.findings);
  }
  if (subject.kind === "task" && level === 6) {
    const again = await runAgain(subject, { signal, onCheck });
    levels.push(again.level);
    findings.push(...again.findings);
  }
  if (level === 6 && subject.kind !== "task")
    levels.push({ level: 6, name: "checks", examined: 0, what: "only a task has checks that can be run again" });
  const running = subject.kind === "task" && !hasEnded(subject.task) ? [subject.task.id] : found.running;
  // What is asked about one thing that goes on has no answer yet; the whole record always goes on.
  if (subject.kind !== "all" && level >= 3)
    findings.push(
      ...running.map((stream) => finding("still_running", "it has not ended yet; verify it again then", { stream })),
    );
  if (resultOf(findings) !== "tampered") findings.push(...nothingExamined(byLevel(levels), asked));
  const { violations, ...report } = found.report;
  return { ...summary(findings), report, levels, findings, running, violations: level >= 4 ? violations : [] };
}

/** Two parts of one level count together. */
function byLevel(levels: readonly LevelExamined[]): readonly LevelExamined[] {
  return levels.map((one) => {
    const same = levels.filter(({ level }) => level === one.level);
    return { ...one, examined: same.reduce((sum, { examined }) => sum + examined, 0) };
  });
}

const OUTSIDE: readonly Code[] = ["witness_missing", "checkpoint_missing", "key_missing"];

function summary(findings: readonly Finding[]): Pick<RecordVerdict, "result" | "reason"> {
  const result = resultOf(findings);
  if (result !== "cannotVerify") return { result };
  const codes = new Set(findings.filter(({ weight }) => weight === "unproven").map(({ code }) => code));
  if (codes.has("nothing_to_verify")) return { result, reason: "nothing was examined that could show it" };
  if (codes.has("still_running") && codes.size === 1) return { result, reason: "it is still running" };
  const isOutside = OUTSIDE.some((code) => codes.has(code));
  return { result, reason: isOutside ? "evidence outside the database is missing" : "evidence is missing" };
}
