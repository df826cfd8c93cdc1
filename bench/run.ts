/**
 * `npm run bench`: Heddle and the installed peers on one scripted server, interleaved, medians, as ratios of one run.
 * A benchmark, not a timed test: it fails only when a budget is missed by more than its named tolerance.
 *
 *   npm run bench                     measure, print, check the budgets
 *   npm run bench -- --rounds 15      more rounds
 *   npm run bench -- --evidence 1000000   questions to that many entries, which takes minutes
 *   npm run bench -- --write          also write docs/bench.md and bench/results.json
 */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startModelServer } from "@heddle/models/testing";
import { calm, measure, median, percentile, type Run } from "./measure.ts";
import { openSubjects, type Subject } from "./subjects.ts";
import { measureIdleThread, measureServer } from "./app-server.ts";
import { measureAgentCost } from "./agent-cost.ts";
import { measureEnvelopeCost } from "./envelope-cost.ts";
import { measureEvidence } from "./evidence.ts";
import { measureFanOut } from "./fan-out.ts";
import { measureLongRead, measureResume } from "./long-read.ts";
import { measurePage } from "./page.ts";
import { measureRooms } from "./rooms.ts";
import { measureTasks } from "./tasks.ts";
import { measureTrees } from "./trees.ts";
import { checkBudgets, noFigures, report, type Figures, type SubjectFigures } from "./report.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "9" },
    evidence: { type: "string", default: "100000" },
    write: { type: "boolean" },
  },
});
const rounds = Number(values.rounds);

const DELTAS = 5000;
const FAN_OUTS = 3;
const IDLE_ROUNDS = 3;
const HELLO = "say hello";
const ECHO = "run echo";
/** Asks for the same of a model that thinks first. */
const THOUGHT = "think, then run echo";
const THOUGHT_MS = 150;
const STREAM = "stream much";

/** What the server saw of one run. */
interface Seen {
  readonly arrivals: number[];
  readonly endings: Promise<number>[];
  readonly bytes: number[];
}

let seen: Seen = { arrivals: [], endings: [], bytes: [] };

await using server = await startModelServer({
  deltaChars: 4,
  async respond(request) {
    const run = seen;
    run.arrivals.push(performance.now());
    run.bytes.push(request.bytes);
    run.endings.push(request.closed.then(() => performance.now()));
    const asked = JSON.stringify(request.body);
    if (asked.includes(STREAM)) return { text: "wor ".repeat(DELTAS) };
    if (asked.includes(THOUGHT) && request.answers === 0) await sleep(THOUGHT_MS);
    if (asked.includes(ECHO) && request.answers === 0)
      return { calls: [{ tool: "exec_command", args: { cmd: "echo hello" } }] };
    return { text: "hello" };
  },
});

const root = await mkdtemp(join(homedir(), ".heddle-bench-"));
try {
  const workspace = join(root, "workspace");
  await mkdir(workspace);
  execFileSync("git", ["init", "--quiet"], { cwd: workspace });
  const subjects = await openSubjects({ root, serverUrl: server.url });
  const figures = await measureAll(subjects, workspace);
  const text = report(figures, rounds);
  process.stdout.write(text);
  if (values.write === true) {
    await writeFile(join(import.meta.dirname, "..", "docs", "bench.md"), text);
    await writeFile(join(import.meta.dirname, "results.json"), `${JSON.stringify(figures, undefined, 2)}\n`);
  }
  const missed = checkBudgets(figures);
  for (const line of missed) process.stderr.write(`missed: ${line}\n`);
  process.exitCode = missed.length === 0 ? 0 : 1;
} finally {
  await rm(root, { recursive: true, force: true });
}

async function measureAll(subjects: readonly Subject[], cwd: string): Promise<Figures> {
  const figures: Figures = { node: { wallMs: [] }, subjects: {} };
  for (const subject of subjects) {
    figures.subjects[subject.name] = noFigures();
    // The first run fills caches that every later one has.
    await runOf(subject, ECHO, cwd);
  }
  const [heddle] = subjects;
  const own = heddle === undefined ? undefined : figures.subjects[heddle.name];
  if (heddle !== undefined && own !== undefined) {
    own.longReadMs.push(...(await measureLongRead(heddle, { cwd, env: heddle.env })));
    for (const { wallMs, peakKb } of await measureResume(heddle, { cwd, env: heddle.env })) {
      own.resumeMs.push(wallMs);
      own.resumeKb.push(peakKb);
    }
    for (let time = 0; time < FAN_OUTS; time += 1)
      own.framesPerCpuSecond.push(await measureFanOut(heddle, { cwd, env: heddle.env }));
    await taskRound(own, root);
    await roomRound(own, root);
    await treeRound(own, root);
    await evidenceRound(own, root);
    await envelopeRound(own, root);
    await agentRound(own, root);
    await pageRound(own);
  }
  for (let round = 0; round < rounds; round += 1) {
    await calm();
    figures.node.wallMs.push((await measure([process.execPath, "-e", "0"], { cwd, env: {} })).wallMs);
    // Each comes first as often as last.
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const of = figures.subjects[subject.name];
      if (of === undefined) continue;
      const hello = await runOf(subject, HELLO, cwd);
      of.helloMs.push(hello.run.wallMs);
      of.firstRequestMs.push((hello.seen.arrivals[0] ?? Number.NaN) - hello.startedAt);
      of.firstRequestBytes.push(hello.seen.bytes[0] ?? Number.NaN);
      of.gapMs.push(await gapOf(subject, ECHO, cwd));
      of.thoughtGapMs.push(await gapOf(subject, THOUGHT, cwd));
      const stream = await runOf(subject, STREAM, cwd);
      of.streamCpuMs.push(stream.run.cpuMs);
      of.peakKb.push(stream.run.peakKb);
      await serverRound(subject, of, cwd);
    }
    process.stderr.write(`round ${round + 1} of ${rounds}\n`);
  }
  process.stderr.write(`node -e 0: ${median(figures.node.wallMs).toFixed(0)} ms\n`);
  return figures;
}

async function taskRound(of: SubjectFigures, folder: string): Promise<void> {
  const { claimMs, reactionMs, idleCpuPercent, peakMb, extraTurns } = await measureTasks(folder);
  of.taskClaimMs.push(percentile(claimMs, 95));
  of.taskReactionMs.push(percentile(reactionMs, 95));
  of.taskIdleCpuPercent.push(idleCpuPercent);
  of.taskPeakMb.push(peakMb);
  of.taskExtraTurns.push(extraTurns);
}

async function roomRound(of: SubjectFigures, folder: string): Promise<void> {
  const { openMs, layerMs, computingRatios, loadingRatios, readingRatios } = await measureRooms(folder);
  of.roomOpenMs.push(...openMs);
  of.roomLayerMs.push(...layerMs);
  of.roomComputingRatio.push(...computingRatios);
  of.roomLoadingRatio.push(...loadingRatios);
  of.roomReadingRatio.push(...readingRatios);
}

async function treeRound(of: SubjectFigures, folder: string): Promise<void> {
  const { keepMs, readMs, freezeMs, freezeRatios } = await measureTrees(folder);
  of.treeKeepMs.push(...keepMs);
  of.treeReadMs.push(...readMs);
  of.treeFreezeMs.push(...freezeMs);
  of.treeFreezeRatio.push(...freezeRatios);
}

async function evidenceRound(of: SubjectFigures, folder: string): Promise<void> {
  const { appendsPerSecond, indexedMs, wordsMs } = await measureEvidence(folder, Number(values.evidence));
  of.evidenceAppends.push(appendsPerSecond);
  of.evidenceIndexedMs.push(indexedMs);
  of.evidenceWordsMs.push(wordsMs);
}

async function envelopeRound(of: SubjectFigures, folder: string): Promise<void> {
  const { helloMs, callMs } = await measureEnvelopeCost(folder);
  of.envelopeHelloMs.push(helloMs);
  of.envelopeCallMs.push(callMs);
}

async function agentRound(of: SubjectFigures, folder: string): Promise<void> {
  const { wallMs, cpuPercent } = await measureAgentCost(folder);
  of.agentTurnMs.push(wallMs);
  of.agentCpuPercent.push(cpuPercent);
}

async function pageRound(of: SubjectFigures): Promise<void> {
  const figures = await measurePage();
  of.pageFirstLoadKb.push(figures.firstLoadKb);
  of.pageOpenMs.push(figures.openMs);
  of.pageOpenCpuMs.push(figures.openCpuMs);
  of.pageScrollFrameMs.push(figures.scrollFrameMs);
  of.pageDeltasPerSecond.push(figures.deltasPerSecond);
  of.pageDeltaFrameMs.push(figures.deltaFrameMs);
  of.pageDeltaCpuPercent.push(figures.deltaCpuPercent);
  of.pageMemoryMb.push(figures.memoryMb);
  of.pageDiffCpuMs.push(figures.diffCpuMs);
  of.pageTasksCpuMs.push(figures.tasksCpuMs);
}

async function serverRound(subject: Subject, of: SubjectFigures, cwd: string): Promise<void> {
  seen = { arrivals: [], endings: [], bytes: [] };
  await calm();
  const figures = await measureServer(subject, { cwd, env: subject.env }, async () => {
    const arrivedAt = seen.arrivals.at(-1) ?? Number.NaN;
    return ((await seen.endings.at(-1)) ?? Number.NaN) - arrivedAt;
  });
  of.readyMs.push(figures.readyMs);
  of.threadStartMs.push(figures.threadStartMs);
  of.turnOverheadMs.push(figures.turnOverheadMs);
  of.turnsPerSecond.push(figures.turnsPerSecond);
  if (of.idleThreadKb.length < IDLE_ROUNDS)
    of.idleThreadKb.push(await measureIdleThread(subject, { cwd, env: subject.env }));
}

/** From the end of the model's first answer to the next request. */
async function gapOf(subject: Subject, prompt: string, cwd: string): Promise<number> {
  const { seen: saw } = await runOf(subject, prompt, cwd);
  return (saw.arrivals[1] ?? Number.NaN) - ((await saw.endings[0]) ?? Number.NaN);
}

async function runOf(
  subject: Subject,
  prompt: string,
  cwd: string,
): Promise<{ run: Run; seen: Seen; startedAt: number }> {
  seen = { arrivals: [], endings: [], bytes: [] };
  await calm();
  const startedAt = performance.now();
  const run = await measure(subject.argv(prompt), { cwd, env: subject.env });
  return { run, seen, startedAt };
}
