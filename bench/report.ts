/** The table people read and the budgets the figures are held to, all as ratios of one run. */
import { cpus, totalmem } from "node:os";
import { median } from "./measure.ts";

export const METRICS = [
  "helloMs",
  "firstRequestMs",
  "gapMs",
  "thoughtGapMs",
  "streamCpuMs",
  "peakKb",
  "firstRequestBytes",
  "readyMs",
  "threadStartMs",
  "turnOverheadMs",
  "turnsPerSecond",
  "idleThreadKb",
  "longReadMs",
  "resumeMs",
  "resumeKb",
  "framesPerCpuSecond",
  "taskClaimMs",
  "taskReactionMs",
  "taskIdleCpuPercent",
  "taskPeakMb",
  "taskExtraTurns",
  "roomOpenMs",
  "roomLayerMs",
  "roomComputingRatio",
  "roomLoadingRatio",
  "roomReadingRatio",
  "treeKeepMs",
  "treeReadMs",
  "treeFreezeMs",
  "treeFreezeRatio",
  "evidenceAppends",
  "evidenceIndexedMs",
  "evidenceWordsMs",
  "envelopeHelloMs",
  "envelopeCallMs",
  "agentTurnMs",
  "agentCpuPercent",
  "pageFirstLoadKb",
  "pageOpenMs",
  "pageOpenCpuMs",
  "pageScrollFrameMs",
  "pageDeltasPerSecond",
  "pageDeltaFrameMs",
  "pageDeltaCpuPercent",
  "pageMemoryMb",
  "pageDiffCpuMs",
  "pageTasksCpuMs",
] as const;
export type Metric = (typeof METRICS)[number];
export type SubjectFigures = Record<Metric, number[]>;

export function noFigures(): SubjectFigures {
  return Object.fromEntries(METRICS.map((metric) => [metric, [] as number[]])) as SubjectFigures;
}

export interface Figures {
  node: { wallMs: number[] };
  subjects: Record<string, SubjectFigures>;
}

interface Row {
  readonly label: string;
  readonly key: Metric;
  readonly unit: string;
  readonly scale?: number;
  /** At most this many times the peer's figure. */
  readonly toCodex?: number;
  /** At least this many times the peer's figure. */
  readonly atLeastToCodex?: number;
  /** At most this many times `node -e 0`. */
  readonly toNode?: number;
  /** At most this, in the unit. */
  readonly absolute?: number;
  /** At least this, in the unit. */
  readonly atLeast?: number;
}

const ROWS: readonly Row[] = [
  { label: "`exec` hello, wall", key: "helloMs", unit: "ms", toNode: 4, toCodex: 0.4 },
  { label: "start to first model request", key: "firstRequestMs", unit: "ms", toCodex: 0.35 },
  { label: "answer to next request, one sandboxed `echo`", key: "gapMs", unit: "ms", toCodex: 0.25, absolute: 12 },
  // As models do: the scripted one answers at once otherwise.
  { label: "the same, when the model took 150 ms to answer", key: "thoughtGapMs", unit: "ms", toCodex: 0.25 },
  { label: "5,000 streamed deltas, CPU", key: "streamCpuMs", unit: "ms", toCodex: 1 },
  { label: "peak memory while streaming", key: "peakKb", unit: "MB", scale: 1 / 1024, toCodex: 0.75 },
  { label: "first request", key: "firstRequestBytes", unit: "kB", scale: 1 / 1024, absolute: 8 },
  { label: "`app-server`: start to `initialize` answered", key: "readyMs", unit: "ms", toCodex: 1.5 },
  { label: "`thread/start`", key: "threadStartMs", unit: "ms", toCodex: 0.2 },
  { label: "warm turn, without the model's time", key: "turnOverheadMs", unit: "ms", toCodex: 0.16, absolute: 8 },
  { label: "20 threads, 5 turns each, at once", key: "turnsPerSecond", unit: "turns/s", atLeastToCodex: 8 },
  // A tenth of the 1.4 MB that Codex was once measured with. Resident, after a collection of garbage where there is any.
  { label: "memory kept for an idle loaded thread", key: "idleThreadKb", unit: "kB", absolute: 140 },
  { label: "`thread/read` of 50 turns of 10,000 items", key: "longReadMs", unit: "ms", absolute: 50 },
  { label: "`exec resume` of 20,000 items, wall", key: "resumeMs", unit: "ms", absolute: 500 },
  { label: "the same, peak memory", key: "resumeKb", unit: "MB", scale: 1 / 1024, absolute: 120 },
  {
    label: "events to 200 readers",
    key: "framesPerCpuSecond",
    unit: "thousand frames / CPU-s",
    scale: 1 / 1000,
    atLeast: 100,
  },
  // 10,000 tasks in the queue and 1,000 in hand, one harness.
  { label: "tasks: claim, p95", key: "taskClaimMs", unit: "ms", absolute: 20 },
  { label: "tasks: reaction to a finished turn, p95", key: "taskReactionMs", unit: "ms", absolute: 200 },
  { label: "tasks: CPU of an idle harness", key: "taskIdleCpuPercent", unit: "%", absolute: 1 },
  { label: "tasks: peak memory of the harness", key: "taskPeakMb", unit: "MB", absolute: 250 },
  { label: "tasks: turns spent on supervision", key: "taskExtraTurns", unit: "turns", absolute: 0 },
  { label: "room for a check over 50,000 files, opening", key: "roomOpenMs", unit: "ms", absolute: 300 },
  { label: "the same, 1,000 changed files more", key: "roomLayerMs", unit: "ms", absolute: 150 },
  {
    label: "a check in a room that computes, CPU against outside",
    key: "roomComputingRatio",
    unit: "×",
    absolute: 1.05,
  },
  { label: "one that only loads 2,000 modules", key: "roomLoadingRatio", unit: "×", absolute: 1.05 },
  // Without a budget: a layered mount takes some microseconds more for each file that is opened, and no mount option helps.
  { label: "one that reads 20,000 files and does nothing with them", key: "roomReadingRatio", unit: "×" },
  { label: "keeping a baseline of 50,000 files", key: "treeKeepMs", unit: "ms", absolute: 5000 },
  { label: "reading its manifest", key: "treeReadMs", unit: "ms", absolute: 150 },
  { label: "freezing 1,000 changed files of it", key: "treeFreezeMs", unit: "ms", absolute: 200 },
  { label: "the same, against a bare walk", key: "treeFreezeRatio", unit: "×", absolute: 2 },
  { label: "appends of 20 entries with all indexes", key: "evidenceAppends", unit: "entries / CPU-s", atLeast: 5_000 },
  // Of CPU, over 100,000 entries, or as many as `--evidence` says.
  { label: "evidence: 100 entries by an index, p95", key: "evidenceIndexedMs", unit: "ms", absolute: 20 },
  { label: "evidence: 100 entries by words, p95", key: "evidenceWordsMs", unit: "ms", absolute: 100 },
  // Of CPU, against the same program without what they put on record.
  { label: "evidence and envelopes, of a turn", key: "envelopeHelloMs", unit: "ms", absolute: 2 },
  { label: "the same, of a call of a tool", key: "envelopeCallMs", unit: "ms", absolute: 1 },
  // Against the same program without Heddle.
  { label: "added to a turn of an outside agent, wall", key: "agentTurnMs", unit: "ms", absolute: 10 },
  { label: "the same, of the processor time of the agent", key: "agentCpuPercent", unit: "%", absolute: 5 },
  { label: "page: scripts before it draws, gzip", key: "pageFirstLoadKb", unit: "kB", absolute: 150 },
  { label: "page: a run of 10,000 steps, to its first step", key: "pageOpenMs", unit: "ms", absolute: 200 },
  // What a busy machine does not change: processor time of the page's own thread.
  { label: "the same, CPU of the page", key: "pageOpenCpuMs", unit: "ms", absolute: 150 },
  { label: "page: a frame while 10,000 steps are scrolled, p95", key: "pageScrollFrameMs", unit: "ms", absolute: 33 },
  // 5,000 are sent each second, in a burst.
  { label: "page: live pieces of a stream", key: "pageDeltasPerSecond", unit: "pieces/s", atLeast: 4_000 },
  { label: "page: a frame while it comes in, p95", key: "pageDeltaFrameMs", unit: "ms", absolute: 33 },
  { label: "the same, share of a core", key: "pageDeltaCpuPercent", unit: "%", absolute: 50 },
  { label: "page: memory after it", key: "pageMemoryMb", unit: "MB", absolute: 120 },
  { label: "page: a diff of 20,000 lines, CPU", key: "pageDiffCpuMs", unit: "ms", absolute: 250 },
  { label: "page: the first of 10,000 tasks, CPU", key: "pageTasksCpuMs", unit: "ms", absolute: 150 },
];

const NOTES = [
  "Answer to next request: on a host that is known to give a sandbox, it is opened while the model is asked. A model that calls a " +
    "command at once, as the scripted one does in the first of the two rows, waits for it here; one that takes 150 ms does not.",
  "Memory kept for an idle loaded thread: what the tree of processes keeps resident for each of 200 threads that are started after " +
    "100 others, once its garbage is collected (by `node --expose-gc`, for this row alone). Without a collection " +
    "the row showed how long ago the last one was.",
];

export function report(figures: Figures, rounds: number): string {
  const names = Object.keys(figures.subjects);
  const node = median(figures.node.wallMs);
  const lines = [
    "# Bench",
    "",
    `Made by \`npm run bench -- --write\` on ${new Date().toISOString().slice(0, 10)}: ${cpus().length} cores, ` +
      `${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}. Medians of ${rounds} interleaved rounds on one ` +
      "scripted server over loopback, each run on a machine that has come to rest; trust the ratios. Raw numbers: bench/results.json.",
    "",
    `\`node -e 0\`: ${node.toFixed(0)} ms`,
    "",
    `| | ${names.join(" | ")} | heddle : codex | budget |`,
    `|---|${names.map(() => "---|").join("")}---|---|`,
  ];
  for (const row of ROWS) {
    const cells = names.map((name) => `${figureOf(figures, name, row)?.toFixed(1) ?? "–"} ${row.unit}`);
    lines.push(`| ${row.label} | ${cells.join(" | ")} | ${ratio(figures, row)} | ${budget(row)} |`);
  }
  lines.push("", ...NOTES.map((note) => `- ${note}`));
  const missed = checkBudgets(figures);
  if (missed.length > 0) lines.push("", "Not reached:", "", ...missed.map((line) => `- ${line}`));
  return `${lines.join("\n")}\n`;
}

export function checkBudgets(figures: Figures): string[] {
  const missed: string[] = [];
  const node = median(figures.node.wallMs);
  for (const row of ROWS) {
    const own = figureOf(figures, "heddle", row);
    const peer = figureOf(figures, "codex", row);
    if (own === undefined) continue;
    if (row.toNode !== undefined && own > row.toNode * node)
      missed.push(`${row.label}: ${(own / node).toFixed(2)} x node -e 0, budget ${row.toNode}`);
    if (row.toCodex !== undefined && peer !== undefined && own > row.toCodex * peer) {
      missed.push(`${row.label}: ${(own / peer).toFixed(2)} x codex, budget ${row.toCodex}`);
    }
    if (row.atLeastToCodex !== undefined && peer !== undefined && own < row.atLeastToCodex * peer)
      missed.push(`${row.label}: ${(own / peer).toFixed(2)} x codex, budget at least ${row.atLeastToCodex}`);
    if (row.atLeast !== undefined && own < row.atLeast)
      missed.push(`${row.label}: ${own.toFixed(1)} ${row.unit}, budget at least ${row.atLeast}`);
    if (row.absolute !== undefined && own > row.absolute)
      missed.push(`${row.label}: ${own.toFixed(1)} ${row.unit}, budget ${row.absolute}`);
  }
  return missed;
}

function figureOf(figures: Figures, name: string, row: Row): number | undefined {
  const values = figures.subjects[name]?.[row.key];
  return values === undefined || values.length === 0 ? undefined : median(values) * (row.scale ?? 1);
}

function ratio(figures: Figures, row: Row): string {
  const [own, peer] = [figureOf(figures, "heddle", row), figureOf(figures, "codex", row)];
  return own === undefined || peer === undefined ? "–" : (own / peer).toFixed(2);
}

function budget(row: Row): string {
  const parts = [
    row.toNode === undefined ? "" : `≤ ${row.toNode} × node`,
    row.toCodex === undefined ? "" : `≤ ${row.toCodex} × codex`,
    row.atLeastToCodex === undefined ? "" : `≥ ${row.atLeastToCodex} × codex`,
    row.atLeast === undefined ? "" : `≥ ${row.atLeast} ${row.unit}`,
    row.absolute === undefined ? "" : `≤ ${row.absolute} ${row.unit}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}
