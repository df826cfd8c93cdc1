/** What an attempt does besides prompting: baselines, verdicts, worktrees, stalls. */
import { realpath } from "node:fs/promises";
import {
  defined,
  isHeddleError,
  reasonOf,
  toHeddleError,
  type EventOf,
  type TaskBaseline,
  type TaskRecord,
} from "@heddle/protocol";
import type { WorkReview } from "@heddle/protocol/tasks";
import type { StartWatch } from "@heddle/agent";
import type { HarnessContext } from "./attempt.ts";
import { takeBaseline } from "./baseline.ts";
import { timeLeftMs } from "./budget.ts";
import type { CheckOptions } from "../checks/check.ts";
import { isNoRoom } from "../checks/commands.ts";
import type { FollowedTurn } from "./follow-turn.ts";
import type { Hold } from "./hold.ts";
import { openContestantTree } from "../contest/contestant-tree.ts";
import { changedSpec, freezeClaim, readBase, readFrozen, type FrozenClaim } from "../judge/freeze-claim.ts";
import { besideReason } from "../judge/beside.ts";
import { readEarlierChecks } from "../judge/flips.ts";
import { readBefore } from "../judge/keep-before.ts";
import { leftBefore, timesBefore } from "../judge/left-before.ts";
import { sweepScratch } from "../judge/scratch.ts";
import { baseFolder } from "../judge/task-rooms.ts";
import { secondOpinion } from "../judge/second-opinion.ts";
import { watchForStalls } from "../stall/watch-for-stalls.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import type { KeptTree, Manifest } from "../tree/manifest.ts";
import { unjudged, verifyWork, workspaceFault, type Verdict } from "../judge/verify.ts";
import type { WorkToDeliver } from "../worktree/build-commit.ts";
import { applyDraft, isDraft, openDraft } from "../worktree/draft.ts";
import { mergeBack, type BroughtBack, type MergeOptions } from "../worktree/merge-back.ts";
import { openWorktree } from "../worktree/open-worktree.ts";

export interface WorkOptions {
  readonly context: HarnessContext;
  readonly hold: Hold;
  readonly folder: string;
  readonly signal: AbortSignal;
}

export interface Found extends Omit<Verdict, "picked"> {
  readonly opinion?: EventOf<"task.checked">["opinion"];
  readonly merged?: Pick<EventOf<"task.merged">, "how" | "ref">;
  readonly durationMs: number;
}

export async function readBaseline(options: WorkOptions, watch: StartWatch): Promise<TaskBaseline> {
  const { context, hold, folder } = options;
  const into = baseFolder(context.home, hold.task.id);
  const like = await newestKept(options, folder);
  try {
    const { journal } = context.heddle;
    const earlier = { journal, home: context.home, task: hold.task, signal: options.signal };
    const leftIn = (base: KeptTree): ReturnType<typeof leftBefore> => leftBefore(earlier, base);
    const timesOf = (manifest: Manifest): ReturnType<typeof timesBefore> => timesBefore(earlier, manifest);
    const step = (name: string): void => watch.step(name);
    return await takeBaseline(checkOptionsFor(options), { into, like, timesOf, leftIn, step });
  } catch (error) {
    const isTooLarge = isHeddleError(error) && error.code === "limit.reached";
    if (!isTooLarge || hold.task.spec.checks.length > 0) throw error;
    // Nothing is judged on it; whatever else needs the copy reports that it is missing.
    context.log(`${hold.task.id}: no copy of its beginning is kept: ${error.message}`);
    return { takenAt: Date.now(), folder: await realpath(folder), tests: {}, boxes: {}, passed: [] };
  }
}

/** Tasks of a folder that are looked at for a copy to share files with. */
const LOOKED_AT = 20;

async function newestKept({ context, hold }: WorkOptions, folder: string): Promise<KeptTree | undefined> {
  const { workspace } = hold.task.spec;
  const others = await context.heddle.journal.tasks.page({ workspace, limit: LOOKED_AT });
  for (const { id, folder: its } of others) {
    if (id === hold.task.id || its !== folder) continue;
    const tree = await readKeptTree(baseFolder(context.home, id)).catch(() => undefined);
    if (tree !== undefined) return tree;
  }
  return undefined;
}

/** Judges what was frozen at the claim; `quiet` ends the agent's processes before anything is frozen. */
export async function judgeWork(
  options: WorkOptions,
  baseline: TaskBaseline,
  quiet: () => Promise<void>,
): Promise<Found> {
  const { hold } = options;
  const began = performance.now();
  const checkOptions = checkOptionsFor(options, () => performance.now() - began);
  await sweepScratch(checkOptions.home, checkOptions.signal).catch((error: unknown) =>
    options.context.log(reasonOf(error)),
  );
  const { verdict, base, frozen } = await judgeClaim(checkOptions, {
    task: hold.task,
    journal: options.context.heddle.journal,
    baseline,
    quiet,
  });
  const took = (): { durationMs: number } => ({ durationMs: Math.round(performance.now() - began) });
  if (base === undefined || frozen === undefined) return { ...verdict, ...took() };
  const work = { base, frozen, picked: verdict.picked };
  const judged = await withOpinion(options, { checkOptions, verdict, work });
  if (!judged.passed) return { ...judged, ...took() };
  const { merged, results, obstacle } = await handBack({ checkOptions, task: hold.task, baseline, work });
  const passed = results.every(({ outcome }) => outcome === "passed");
  const review = obstacle === undefined ? undefined : obstructed(obstacle);
  const more = defined({ merged: passed ? merged : undefined, review });
  return { ...judged, results: [...judged.results, ...results], passed, ...more, ...took() };
}

/** To the task's workspace, when the task worked elsewhere. */
async function handBack(options: MergeOptions): Promise<BroughtBack> {
  const { task, checkOptions, work } = options;
  if (isDraft(task) && task.spec.apply === "never") return { results: [] };
  if (!isDraft(task)) return await mergeBack(options);
  return await applyDraft({ home: checkOptions.home, task, work, signal: checkOptions.signal });
}

/** The work is fine; it cannot be delivered. */
function obstructed(message: string): WorkReview {
  return { reasons: [{ kind: "delivery", message, files: [] }] };
}

interface Claim {
  readonly task: TaskRecord;
  readonly journal: HarnessContext["heddle"]["journal"];
  readonly baseline: TaskBaseline;
  readonly quiet: () => Promise<void>;
}

async function judgeClaim(
  checkOptions: CheckOptions,
  { task, journal, baseline, quiet }: Claim,
): Promise<{ readonly verdict: Verdict } & Partial<FrozenClaim>> {
  try {
    const base = await readBase(checkOptions.home, task, baseline);
    const known = await readFrozen(checkOptions.home, task);
    if (known === undefined) {
      await quiet();
      const gone = await workspaceFault(checkOptions.folder, baseline);
      if (gone !== undefined) return { verdict: unjudged(checkOptions, gone.message, [gone]) };
    }
    const frozen = known ?? (await freezeClaim(checkOptions, task, base).catch(refuseFaults));
    const { deliver: accepted, lastCheck } = task;
    if (accepted !== undefined && lastCheck?.work?.sha256 !== frozen.sha256)
      return { verdict: unjudged(checkOptions, "the accepted work no longer exists as it was judged") };
    const verdict = await verifyWork(checkOptions, {
      taskId: task.id,
      baseline,
      base,
      frozen,
      accepted,
      before: await readBefore(checkOptions.home, task.id),
      beside: await besideReason({ journal, home: checkOptions.home, task }),
      earlier: await readEarlierChecks(journal, task.id, base.sha256),
    });
    if (verdict.work === undefined) return { verdict, base, frozen };
    const work = { ...verdict.work, ...(await changedSpec(task, baseline, frozen)) };
    return { verdict: { ...verdict, work }, base, frozen };
  } catch (error) {
    checkOptions.signal.throwIfAborted();
    if (error instanceof NotFrozen) throw error.cause;
    if (isNoRoom(error)) throw error;
    return { verdict: unjudged(checkOptions, `the work could not be judged: ${toHeddleError(error).message}`) };
  }
}

/** Heddle's home or the host failed, not the work: the agent can do nothing about it. */
class NotFrozen extends Error {}

function refuseFaults(error: unknown): never {
  const isFault = isHeddleError(error) && /^(store|host)\./.test(error.code);
  throw isFault ? new NotFrozen("not frozen", { cause: error }) : error;
}

/** With the opinion of another model, where the spec asks for one. */
async function withOpinion(
  { context, hold }: WorkOptions,
  {
    checkOptions,
    verdict,
    work,
  }: { readonly checkOptions: CheckOptions; readonly verdict: Verdict; readonly work: WorkToDeliver },
): Promise<Omit<Found, "durationMs">> {
  // On the work of a contestant it was asked already.
  if (hold.task.spec.secondOpinion === undefined || hold.task.contest !== undefined) return verdict;
  const { provider } = await context.settingsFor(hold.task.spec);
  const shown = { ...work, changes: work.picked };
  const opinion = await secondOpinion({ checkOptions, verdict, work: shown, heddle: context.heddle, provider });
  return opinion === undefined ? verdict : { ...verdict, opinion, passed: verdict.passed && opinion.accepts };
}

/** Where the task works: its workspace, a draft or a worktree of it. */
export async function findFolder({ home }: HarnessContext, { task }: Hold, signal: AbortSignal): Promise<string> {
  if (task.contestant !== undefined) return await openContestantTree({ home, task, signal });
  if (isDraft(task)) return await openDraft({ home, task, signal });
  if (task.spec.worktree === undefined) return task.spec.workspace;
  return (await openWorktree({ home, task, signal })).folder;
}

export function watchTurn({ context, hold, folder }: WorkOptions, turn: FollowedTurn): AsyncDisposable {
  const { heddle, feed, log } = context;
  const { threadId, turnId, version } = turn;
  return watchForStalls({ heddle, feed, log, hold, folder, threadId, turnId, version });
}

export function checkOptionsFor(
  { context, hold, folder, signal }: WorkOptions,
  tookMs: () => number = () => 0,
): CheckOptions {
  const { attempt, spec } = hold.task;
  return {
    folder,
    spec,
    home: context.home,
    signal,
    timeLeftMs: () => timeLeftMs(hold.task) - tookMs(),
    async onCheck(name, room) {
      await hold.append({ type: "task.checking", v: 1, attempt, name, room });
    },
  };
}
