/** What a verification comes to, and how it is printed. */
import type { VerifyReport, ExportReport } from "@heddle/journal";
import type { Finding, Result } from "@heddle/journal/verification";
import { counted, visibleLine } from "@heddle/protocol";
import type { RecordVerdict } from "@heddle/tasks/verification";
import { behind } from "../print/screen.ts";

export const VERIFY_EXIT: Readonly<Record<Result, number>> = { clean: 0, violation: 1, tampered: 2, cannotVerify: 3 };
/** As `sysexits.h` has it: 2, which other commands use, is a verdict here. */
export const USAGE_EXIT = 64;

/** Of the record, or of a bundle. */
export interface Verdict extends Omit<RecordVerdict, "report"> {
  readonly report?: Omit<VerifyReport, "violations"> | Omit<ExportReport, "replay" | "blobFindings">;
}

const TITLES: Readonly<Record<Result, string>> = {
  clean: "clean",
  violation: "violation",
  tampered: "tampered",
  cannotVerify: "cannot verify",
};

export function verdictText({ result, reason, report, levels, findings, running }: Verdict): string {
  const counts =
    report === undefined
      ? ""
      : `${counted(report.events, "event")} in ${counted(report.streams, "stream")}, ${counted(report.checkpoints, "checkpoint")} examined`;
  const lines = [
    ...findings.map((found) => `  ${positionOf(found)}${wordOf(found)}${found.code}: ${found.message}`),
    ...levels.map(({ level, name, what }) => `  level ${level} ${name}: ${what}`),
    ...(report !== undefined && "notices" in report ? noticeLines(report) : []),
    ...(report !== undefined && "keyId" in report ? exportFacts(report) : []),
    ...running.map((stream) => `  running: ${stream} has not ended; what is stored of it so far was verified`),
  ];
  // A path may hold a line end.
  const head = `${TITLES[result]}: ${behind(reason ?? counts)}`;
  return `${[head, ...lines.map(visibleLine)].join("\n")}\n`;
}

function wordOf({ weight }: Finding): string {
  return weight === "warning" ? "warning " : "";
}

function positionOf({ stream, version }: Finding): string {
  return stream === undefined ? "" : `${stream}${version === undefined ? "" : ` event ${version}`}: `;
}

function noticeLines({ notices }: Pick<VerifyReport, "notices">): readonly string[] {
  return notices
    .filter(({ kind }) => kind !== "bodies-purged")
    .map(({ kind, message }) => `  notice ${kind}: ${message}`);
}

function exportFacts({ subjects, keyId }: Pick<ExportReport, "subjects" | "keyId">): readonly string[] {
  return [
    ...subjects.map((subject) => `  of ${subject}`),
    ...(keyId === undefined ? [] : [`  signed by key ${keyId}: compare it with the key of the home it came from`]),
  ];
}
