/** Levels 5 and 6 of a task: what was kept of its work is as the record says, and, on request, its checks say the same again. */
import { counted } from "@heddle/protocol";
import { finding, type Finding, type LevelExamined } from "@heddle/journal/verification";
import { checkKept } from "../owner/verify-again.ts";
import type { Subject } from "./subject.ts";

type TaskSubject = Extract<Subject, { kind: "task" }>;

interface Examined {
  readonly level: LevelExamined;
  readonly findings: readonly Finding[];
}

export async function examineKept(
  { task, tasks }: TaskSubject,
  { home, signal }: { readonly home: string; readonly signal: AbortSignal },
): Promise<Examined> {
  const { id: stream } = task;
  const { files, altered, missing } = await checkKept({ home, task, log: await tasks.log(stream), signal });
  return {
    level: { level: 5, name: "kept work", examined: files, what: `${counted(files, "kept file")} of the task` },
    findings: [
      ...altered.map((path) => finding("unexplained_change", `the kept file ${path} is not as recorded`, { stream })),
      ...(missing === undefined ? [] : [finding("artifact_missing", missing, { stream })]),
    ],
  };
}

export async function runAgain(
  { task, tasks }: TaskSubject,
  { signal, onCheck }: { readonly signal: AbortSignal; readonly onCheck: (name: string) => void },
): Promise<Examined> {
  const { id: stream } = task;
  const { outcome, reasons, now } = await tasks.verify(stream, { signal, onCheck });
  const checks = now?.checks.length ?? 0;
  // There is one verdict: it differs once, for whatever reasons.
  const code = outcome === "differs" ? "verdict_differs" : "artifact_missing";
  const findings =
    reasons.length === 0 ? [] : [{ ...finding(code, reasons.join("; "), { stream }), level: 6 as const }];
  return {
    level: { level: 6, name: "checks", examined: checks, what: `${counted(checks, "check")} run again` },
    findings,
  };
}
