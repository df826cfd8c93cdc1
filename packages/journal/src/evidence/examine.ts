/**
 * Levels 1 to 5 over the record of a home, for one stream, several, or all. Each level says how much it examined, because a
 * check that looked at nothing has shown nothing.
 */
import { counted } from "@heddle/protocol";
import { checkBlob, type BlobState } from "../blobs/blob-files.ts";
import type { Journal, VerifyReport, VerifyWatch } from "../journal.ts";
import { changedPaths, loadManifest } from "../manifests/manifest.ts";
import { unexplained, type Compared, type Span } from "../replay/effects.ts";
import { collectFindings, finding, type Finding, type Level, type Report } from "../replay/findings.ts";
import type { BlobFact } from "../replay/kept-blobs.ts";
import type { ReplayReport } from "../replay/replay.ts";
import { recordFindings } from "./codes.ts";

export interface ExamineOptions extends VerifyWatch {
  readonly home: string;
  /** Absent: the whole record. */
  readonly streams?: readonly string[] | undefined;
  /** The highest one. */
  readonly level: Level;
}

export interface LevelExamined {
  readonly level: Level;
  readonly name: string;
  readonly examined: number;
  readonly what: string;
}

export interface Examination {
  readonly levels: readonly LevelExamined[];
  readonly findings: readonly Finding[];
  readonly report: VerifyReport;
  /** Streams with a turn that has not ended. */
  readonly running: readonly string[];
}

export type Result = "clean" | "violation" | "tampered" | "cannotVerify";

export async function examine(journal: Journal, options: ExamineOptions): Promise<Examination> {
  const { streams, level, home, ...watch } = options;
  const parts: readonly (string | undefined)[] = streams ?? [undefined];
  const reports: VerifyReport[] = [];
  const replays: ReplayReport[] = [];
  for (const stream of parts) {
    reports.push(await journal.verify(stream, watch));
    // A store that cannot be read shows nothing but that.
    const isUnreadable = reports.at(-1)?.damage.some(({ kind }) => kind === "file-corrupt") === true;
    if (level >= 3 && !isUnreadable) replays.push(await journal.replay(stream, watch));
  }
  const report = reports.reduce(joinReports);
  const replay = joinReplays(replays);
  const levels: LevelExamined[] = [...recordLevels(report), ...replayLevels(replay)];
  const findings: Finding[] = [...recordFindings(report), ...replay.findings];
  if (level >= 5) {
    const effects = await examineEffects(home, replay);
    levels.push(effects.level);
    findings.push(...effects.findings);
  }
  return {
    levels: levels.filter((one) => one.level <= level),
    findings: findings.filter((one) => one.level <= level),
    report,
    running: replay.running,
  };
}

/** The levels that a chain and its witnesses give. */
export function recordLevels(
  report: Pick<VerifyReport, "events" | "streams" | "checkpoints"> & { readonly claims?: number },
): readonly LevelExamined[] {
  const { events, streams, checkpoints, claims } = report;
  const lines = claims === undefined ? "" : `, ${counted(claims, "line")} of the witness`;
  return [
    { level: 1, name: "chain", examined: events, what: `${counted(events, "event")} in ${counted(streams, "stream")}` },
    {
      level: 2,
      name: "checkpoints",
      examined: checkpoints + (claims ?? 0),
      what: `${counted(checkpoints, "checkpoint")}${lines}`,
    },
  ];
}

export function replayLevels({
  events,
  turns,
  calls,
  hops,
  hosts,
}: Omit<ReplayReport, "findings" | "spans" | "compared" | "blobs">): readonly LevelExamined[] {
  return [
    { level: 3, name: "structure", examined: events, what: `${counted(events, "event")}, ${counted(turns, "turn")}` },
    {
      level: 4,
      name: "envelopes",
      examined: turns + calls + hops + hosts,
      what: `${counted(turns, "turn")}, ${counted(calls, "call")}, ${counted(hops, "hop")}, ${counted(hosts, "host")}`,
    },
  ];
}

/** Exit statuses of `heddle verify`. Nothing found that was changed comes before a bound that was crossed. */
export function resultOf(findings: readonly Finding[]): Result {
  const weights = new Set(findings.map(({ weight }) => weight));
  if (weights.has("tampered")) return "tampered";
  if (weights.has("violation")) return "violation";
  return weights.has("unproven") ? "cannotVerify" : "clean";
}

/** Where a level that was asked for has examined nothing. */
export function nothingExamined(levels: readonly LevelExamined[], asked: Level | undefined): readonly Finding[] {
  const first = levels.find(({ level }) => level === 1);
  const last = asked === undefined ? undefined : levels.find(({ level }) => level === asked);
  const empty = first === undefined || first.examined === 0 ? { name: "chain", level: 1 as const } : last;
  if (empty === undefined || ("examined" in empty && empty.examined > 0)) return [];
  return [
    {
      ...finding("nothing_to_verify", `level ${empty.level} (${empty.name}) has examined nothing`),
      level: empty.level,
    },
  ];
}

function joinReports(one: VerifyReport, other: VerifyReport): VerifyReport {
  const gone = new Map([...one.missing, ...other.missing].map((missing) => [missing.message, missing]));
  const told = new Map([...one.notices, ...other.notices].map((notice) => [notice.message, notice]));
  return {
    events: one.events + other.events,
    streams: one.streams + other.streams,
    checkpoints: one.checkpoints + other.checkpoints,
    claims: one.claims + other.claims,
    damage: [...one.damage, ...other.damage],
    notices: [...told.values()],
    missing: [...gone.values()],
    violations: [...one.violations, ...other.violations],
  };
}

const NO_REPLAY: ReplayReport = {
  events: 0,
  turns: 0,
  calls: 0,
  hops: 0,
  hosts: 0,
  findings: [],
  running: [],
  spans: [],
  compared: [],
  blobs: [],
};

function joinReplays(replays: readonly ReplayReport[]): ReplayReport {
  return replays.reduce(
    (one, other) => ({
      events: one.events + other.events,
      turns: one.turns + other.turns,
      calls: one.calls + other.calls,
      hops: one.hops + other.hops,
      hosts: one.hosts + other.hosts,
      findings: [...one.findings, ...other.findings],
      running: [...one.running, ...other.running],
      spans: [...one.spans, ...other.spans],
      compared: [...one.compared, ...other.compared],
      blobs: [...one.blobs, ...other.blobs],
    }),
    NO_REPLAY,
  );
}

async function examineEffects(
  home: string,
  { spans, compared, blobs }: Pick<ReplayReport, "spans" | "compared" | "blobs">,
): Promise<{ readonly level: LevelExamined; readonly findings: readonly Finding[] }> {
  const { report, kept } = collectFindings();
  let files = 0;
  for (const span of spans) files += await compareSpan(home, span, report);
  const turns = examineCompared(compared, report);
  await compareBlobs(home, blobs, report);
  const lists =
    spans.length === 0 && turns.examined === 0
      ? "no lists of files (an envelope with manifest: true records them)"
      : `${counted(files, "file")} in ${counted(spans.length, "span")}, ${counted(turns.files, "file")} in ${counted(turns.examined, "turn")} that may not write them`;
  const what = `${lists}, ${counted(blobs.length, "whole output")}`;
  const examined = spans.length + turns.examined + blobs.length;
  return { level: { level: 5, name: "effects", examined, what }, findings: kept };
}

/** What turns have compared themselves: the record says what they found, so no file is needed for it. */
export function examineCompared(compared: readonly Compared[], report: Report) {
  const sum = { files: 0, examined: 0 };
  for (const turn of compared) {
    const { files, changed, more, notExamined } = turn;
    sum.files += files;
    if (files > 0) sum.examined += 1;
    for (const path of changed)
      report("changed_meanwhile", `${path} changed in a turn whose envelope does not write it`, turn);
    if (more > 0) report("changed_meanwhile", `${more} more files changed in the same turn`, turn);
    if (notExamined !== undefined)
      report("not_examined", `not all files were looked at: ${WHY[notExamined] ?? notExamined}`, turn);
  }
  return sum;
}

const WHY: Readonly<Record<string, string>> = {
  files: "the workspace has too many",
  time: "it would have taken too long",
  unreadable: "a folder cannot be read",
};

async function compareBlobs(home: string, blobs: readonly BlobFact[], report: Report): Promise<void> {
  const states = new Map<string, BlobState>();
  for (const blob of blobs) {
    const { sha256, isCollected } = blob;
    const state = states.get(sha256) ?? (await checkBlob(home, sha256));
    states.set(sha256, state);
    if (state === "altered") report("blob_altered", `the whole output ${sha256} has another content`, blob);
    else if (state === "missing" && isCollected)
      report("blob_collected", `the whole output ${sha256} was removed by rule, on record`, blob);
    else if (state === "missing")
      report("artifact_missing", `the whole output ${sha256} is missing, and nothing on record says why`, blob);
  }
}

async function compareSpan(home: string, span: Span, report: Report): Promise<number> {
  const before = await load(home, span.before, { span, report });
  // Still in force: there is nothing yet to compare with.
  if (span.isOpen) return 0;
  const after = await load(home, span.after, { span, report });
  if (before === undefined || after === undefined) return 0;
  if (before.isCut || after.isCut)
    report("artifact_missing", "a list of files is cut, because the folders hold more than it may have", span);
  for (const path of changedPaths(before, after)) {
    const why = unexplained(span, path);
    if (why !== undefined) report("unexplained_change", `${path} changed ${why}`, span);
  }
  return Object.keys(after.files).length;
}

async function load(
  home: string,
  name: string | undefined,
  { span, report }: { readonly span: Span; readonly report: Report },
) {
  const found = name === undefined ? undefined : await loadManifest(home, name);
  const what =
    name === undefined ? "no list of files was taken" : `the list of files ${name} is missing or was changed`;
  if (found === undefined) report("artifact_missing", what, span);
  return found;
}
