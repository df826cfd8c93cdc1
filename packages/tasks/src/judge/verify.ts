/**
 * Decides whether work is done, on what Heddle kept and froze and on nothing else:
 *
 *   deliver stated:      beginning + delivered files ─▶ checks ─▶ all pass, with a ground ─▶ verified
 *   deliver not stated:  beginning + all changes     ─▶ checks ─▶ all pass
 *                          rests only on named work and new source that something leads to ─▶ verified
 *                          otherwise: beginning + only that ─▶ checks ─▶ pass ─▶ verified, the rest is not needed
 *                                                                     └▶ fail ─▶ the owner decides
 *
 * A check that fails, breaks or a protected file that was changed: rejected. Passes that prove nothing: the owner decides.
 */
import { existsSync } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { toHeddleError, type CheckResult, type CheckViolation, type TaskBaseline } from "@heddle/protocol";
import { MAX_WORK_FILES, type JudgedWork, type TaskCheck, type WorkReview } from "@heddle/protocol/tasks";
import { toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { isNoRoom } from "../checks/commands.ts";
import { nameChecks } from "../checks/names.ts";
import { withParts } from "../checks/run-all.ts";
import { listedNames } from "../checks/shown.ts";
import { admit, withWhy, type Admitted } from "./admit.ts";
import type { Earlier } from "./flips.ts";
import { foundByTools } from "./by-tools.ts";
import { judgePicked, type JudgedRoom } from "./judge-picked.ts";
import { linkReason, linksThrough } from "./links.ts";
import { isRun, namedByName, namedToGo, namedWork, runsCommands } from "./named-work.ts";
import { pickAll, pickDelivered, reasonOf, telling, workFiles, type Reason } from "./pick.ts";
import { protectedChanges } from "./protected.ts";
import {
  foundByCommands,
  matchedSource,
  restable,
  restsReview,
  splitOthers,
  unnameableReview,
  type Observed,
} from "./rests.ts";
import { leftRead, leftReason, type LeftRead } from "./rests-on-left.ts";
import { openSetups } from "./open-check-room.ts";
import { setupReason, type BeginningSetups } from "./set-up.ts";
import { goneFolder } from "./task-rooms.ts";
import { flakyFailure, nothingDone, weakness } from "./weak.ts";
import { judgesAmong } from "./wildcards.ts";
import type { Change, FrozenWork, KeptTree } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";

export interface Verdict {
  /** In the order of the spec, and after them what is said of the work as a whole. */
  readonly results: readonly CheckResult[];
  readonly violations: readonly CheckViolation[];
  /** It is verified as far as the checks go. */
  readonly passed: boolean;
  /** What was judged; absent: nothing could be. */
  readonly work?: JudgedWork;
  /** Changes that the verdict stands for. */
  readonly picked: readonly Change[];
  /** Nothing failed, and it is the owner's to decide. */
  readonly review?: WorkReview;
}

export interface FrozenCase {
  /** Whose work it is, to tell what it left itself from what others did. */
  readonly taskId?: string;
  readonly baseline: TaskBaseline;
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
  /** What the owner accepted as the work. */
  readonly accepted?: readonly string[] | undefined;
  /** What takes back what agents of earlier tasks left; undefined: it cannot be taken back. */
  readonly before?: readonly Change[] | undefined;
  /** Said where other agents worked in the folder meanwhile; it counts where a check is a command. */
  readonly beside?: Reason | undefined;
  /** What the checks found in earlier rounds of the task. */
  readonly earlier?: readonly Earlier[] | undefined;
}

interface SharedCase extends FrozenCase {
  readonly setups: BeginningSetups;
}

/** Throws only when it is stopped, and `sandbox.unavailable` where no room can be opened. */
export async function verifyWork(checkOptions: CheckOptions, work: FrozenCase): Promise<Verdict> {
  try {
    await using setups = openSetups(checkOptions, { base: work.base, workspace: work.baseline.folder });
    return await verdictOf(checkOptions, { ...work, setups });
  } catch (error) {
    checkOptions.signal.throwIfAborted();
    if (isNoRoom(error)) throw error;
    return unjudged(checkOptions, `the work could not be judged: ${toHeddleError(error).message}`);
  }
}

async function verdictOf(checkOptions: CheckOptions, work: SharedCase): Promise<Verdict> {
  const { base, frozen, accepted } = work;
  const deliver = accepted ?? checkOptions.spec.deliver;
  const found =
    deliver === undefined ? await judgeAll(checkOptions, work) : await judgeDelivered(checkOptions, work, deliver);
  const judged = withReasons(checkOptions, work, await judgeDoubted(checkOptions, work, found));
  const { room, picked, review } = judged;
  const violations = [...protectedChanges(frozen.changes, checkOptions.spec), ...room.violations];
  const isClean = violations.length === 0 && room.passed;
  const idle = isClean && telling(frozen.changes).length === 0 && weakness(room.results)?.kind === "vacuous";
  const results = idle ? [...room.results, nothingDone()] : room.results;
  const files = withWhy(workFiles(picked, frozen.changes), judged.why);
  const judgedWork = { base: base.sha256, sha256: frozen.sha256, ...files };
  const flaky = violations.length === 0 ? flakyFailure(results) : undefined;
  const put = flaky === undefined ? (isClean && !idle ? review : undefined) : { reasons: [flaky] };
  return {
    results,
    violations,
    picked,
    passed: isClean && !idle && put === undefined,
    work: { ...judgedWork, ...madeIn(room), ...(room.kind === undefined ? {} : { room: room.kind }) },
    ...(put === undefined ? {} : { review: put }),
  };
}

function madeIn({ setup: { made } }: JudgedRoom): Pick<JudgedWork, "made" | "madeCount"> {
  const paths = telling(made).map(({ path }) => toText(path));
  return paths.length === 0 ? {} : { made: paths.slice(0, MAX_WORK_FILES), madeCount: paths.length };
}

interface Judged extends Admitted {
  readonly room: JudgedRoom;
  readonly review?: WorkReview | undefined;
}

async function judgeDelivered(
  checkOptions: CheckOptions,
  work: SharedCase,
  deliver: readonly string[],
): Promise<Judged> {
  const admitted = admitTo(checkOptions, work, pickDelivered(work.base, work.frozen, deliver));
  const room = await judgeIn(checkOptions, work, admitted.picked);
  const weak = weakness(room.results);
  return { room, ...admitted, ...(weak === undefined ? {} : { review: { reasons: [weak] } }) };
}

async function judgeAll(checkOptions: CheckOptions, work: SharedCase): Promise<Judged> {
  const { frozen } = work;
  const { picked: all, why } = admitTo(checkOptions, work, pickAll(frozen.changes));
  const room = await judgeIn(checkOptions, work, all, { roomKind: "work" });
  if (!room.passed) return { room, picked: all, why };
  const weak = weakness(room.results);
  if (weak !== undefined) return { room, picked: all, why, review: { reasons: [weak] } };
  const observed = await observe(checkOptions, work, { room, picked: all, why });
  const { picked: rested } = admitTo(checkOptions, work, await withoutFound(checkOptions, work, observed));
  const unnameable = unnameableReview(rested);
  const own = new Set(rested.map(({ path }) => path));
  if (telling(all).every(({ path }) => own.has(path))) return { room, picked: rested, why, review: unnameable };
  const alone = await judgeIn(checkOptions, work, rested);
  if (isEnough(alone)) {
    // Nothing rests on it, and the owner asked for what lies there.
    const { picked: named } = admitTo(checkOptions, work, withTaken(observed, rested));
    const whole = named.length === rested.length ? alone : await judgeIn(checkOptions, work, named);
    const [stands, stood] = isEnough(whole) ? [whole, named] : [alone, rested];
    return { room: stands, picked: stood, why, review: unnameableReview(stood) };
  }
  const failing = alone.results.filter(({ outcome }) => outcome !== "passed").map(({ name }) => name);
  const isReadEnough = await passesWithRead(checkOptions, work, { observed, rested });
  const review = restsReview(observed, { rested, failing: [...failing, ...lost(alone)], isReadEnough });
  return { room, picked: all, why, review };
}

function isEnough({ passed, results }: JudgedRoom): boolean {
  return passed && weakness(results) === undefined;
}

interface Told extends Observed {
  /** Named by a wildcard, and it judges by being there or gone, or by its word: no work where anything rests on it. */
  readonly taken: ReadonlySet<string>;
}

function withTaken({ changes, taken }: Told, rested: readonly Change[]): readonly Change[] {
  const own = new Set(rested.map(({ path }) => path));
  return taken.size === 0 ? rested : changes.filter(({ path }) => own.has(path) || taken.has(toText(path)));
}

async function observe(checkOptions: CheckOptions, work: SharedCase, { room, picked, why }: Judged): Promise<Told> {
  const { spec } = checkOptions;
  const { base, frozen, baseline, setups } = work;
  const seen = {
    changes: inRoom(frozen.changes, picked, why),
    reads: readsOf(room.ran),
    commandReads: readsOf(room.ran.filter((_, index) => isCommand(spec.checks[index]))),
    isMatched: namedWork(spec, baseline.passed, () => false),
    isNamedByName: namedByName(spec, baseline.passed),
    isToGo: namedToGo(spec),
  };
  const toJudge = { baseline, room: { base, frozen, picked, setups, workspace: baseline.folder } };
  const { isMatched, commandReads } = seen;
  const isRead = (path: RawPath): boolean => commandReads === undefined || commandReads.has(path);
  const judges = await judgesAmong(checkOptions, { suspects: matchedSource(seen), isRead, isMatched, toJudge });
  return {
    ...seen,
    isNamed: namedWork(spec, baseline.passed, judges.isOne),
    taken: judges.taken,
    isRun: isRun(spec),
    mayRestOnTests: !spec.protectTests,
  };
}

/** What it may rest on, without new source that a tool came to by a name of its own. */
async function withoutFound(
  checkOptions: CheckOptions,
  work: SharedCase,
  observed: Observed,
): Promise<readonly Change[]> {
  const rested = restable(observed);
  const found = foundByCommands(rested, observed);
  // More than a verdict can name goes to the owner as it is.
  if (found.length === 0 || unnameableReview(rested) !== undefined) return rested;
  const { base, frozen, baseline, setups } = work;
  const own = new Set(found.map(({ path }) => path));
  const { commandReads } = observed;
  const leading = rested.filter(({ path }) => !own.has(path) && (commandReads === undefined || commandReads.has(path)));
  const { picked } = admitTo(checkOptions, work, rested);
  const toJudge = { baseline, room: { base, frozen, picked, setups, workspace: baseline.folder } };
  const refused = await foundByTools(checkOptions, { ...toJudge, frozen }, { found, leading });
  return rested.filter((change) => !refused.has(change));
}

/**
 * What nobody vouches for: what earlier agents left, and what the setup made otherwise because of the work. The work is judged
 * without it, or put to the owner.
 */
async function judgeDoubted(checkOptions: CheckOptions, work: SharedCase, judged: Judged): Promise<Judged> {
  const { room, picked, review } = judged;
  const { baseline, base, frozen, before = [] } = work;
  const own = new Set(picked.map(({ path }) => path));
  const back = before.filter(({ path }) => !own.has(path));
  const find = (ran: JudgedRoom["ran"], taken?: readonly Change[]): LeftRead | undefined =>
    leftRead(baseline, checkOptions.spec.checks, {
      ran,
      base,
      picked,
      back,
      ...(taken === undefined ? {} : { taken }),
    });
  const left = find(room.ran);
  const told = { own: work.taskId, isDeleted: (id: string) => existsSync(goneFolder(checkOptions.home, id)) };
  if (!room.passed) {
    // What was left may be all that is in the way of it.
    const without =
      left === undefined || back.length === 0 ? room : await judgeIn(checkOptions, work, picked, { back });
    if (left === undefined || !without.passed) return judged;
    return { ...judged, room: without, review: { reasons: [leftReason(left, { ...told, isInTheWay: true })] } };
  }
  const isDoubted = room.setup.doubted.length > 0;
  if (left === undefined && !isDoubted) return judged;
  if (left === undefined || back.length > 0) {
    const taken = left === undefined ? [] : back;
    const clean = await withoutLeft(checkOptions, work, { judged, taken });
    const alone = await judgeIn(checkOptions, clean, picked, { back: taken, hasDoubted: false });
    const all = completePicks(base.manifest, frozen.changes, [...picked, ...taken]);
    const isEnough = alone.passed && weakness(alone.results) === undefined && find(alone.ran, all) === undefined;
    if (isEnough) return { ...judged, room: alone, review: clean === work ? review : undefined };
  }
  const reasons = [
    ...(left === undefined ? [] : [leftReason(left, told)]),
    ...(isDoubted ? [setupReason(room.setup, base)] : []),
  ];
  return { ...judged, review: { ...review, reasons: [...(review?.reasons ?? []), ...reasons] } };
}

/** Where checks passed before the work, that may be by what was left: then it counts how they came out without it. */
async function withoutLeft(
  checkOptions: CheckOptions,
  work: SharedCase,
  { judged, taken }: { readonly judged: Judged; readonly taken: readonly Change[] },
): Promise<SharedCase> {
  // Not stated what is delivered, nothing is known yet of what such work rests on.
  const isStated = (work.accepted ?? checkOptions.spec.deliver) !== undefined;
  if (!isStated || taken.length === 0 || weakness(judged.room.results)?.kind !== "vacuous") return work;
  const { results } = await judgeIn(checkOptions, { ...work, earlier: [] }, [], { back: taken });
  const passed = withParts(results).filter(({ outcome }) => outcome === "passed");
  return { ...work, baseline: { ...work.baseline, passed: passed.map(({ name }) => name) } };
}

/** Whatever else is said of it: nothing is verified by files that somebody else than the owner may have had a hand in. */
function withReasons(
  { spec }: CheckOptions,
  { base, baseline, beside, frozen: { wroteOutside = [] } }: FrozenCase,
  judged: Judged,
): Judged {
  const { ran } = judged.room;
  const links = linksThrough(base.manifest, judged.picked, { ran, root: baseline.folder });
  const more = [
    ...(beside !== undefined && spec.checks.some(isCommand) ? [beside] : []),
    ...(links.length === 0 ? [] : [linkReason(links)]),
    ...(wroteOutside.length === 0 ? [] : [outsideReason(wroteOutside)]),
  ];
  if (more.length === 0) return judged;
  return { ...judged, review: { ...judged.review, reasons: [...(judged.review?.reasons ?? []), ...more] } };
}

function outsideReason(paths: readonly RawPath[]): Reason {
  const names = paths.map((path) => toText(path));
  const message = `files with further names outside the workspace (hard links) are not as they were, so that what lies there, and what checks read of it, may have been changed: ${listedNames(names, 10)}`;
  return reasonOf("outside", message, names);
}

function admitTo(
  checkOptions: CheckOptions,
  { base, frozen, baseline }: FrozenCase,
  picks: readonly Change[],
): Admitted {
  return admit({ spec: checkOptions.spec, folder: baseline.folder, base, frozen }, picks);
}

/** No check can need what no room had. */
function inRoom(changes: readonly Change[], picked: readonly Change[], why: Admitted["why"]): readonly Change[] {
  const own = new Set(picked.map(({ path }) => path));
  return changes.filter(({ path }) => own.has(path) || !why.has(path));
}

/** A check may need a file that it only looks for, which no reading shows. */
async function passesWithRead(
  checkOptions: CheckOptions,
  work: SharedCase,
  { observed, rested }: { readonly observed: Observed; readonly rested: readonly Change[] },
): Promise<boolean> {
  const { read, unread } = splitOthers(observed, rested);
  if (unread.length === 0 || read.length === 0) return read.length > 0;
  const { picked } = admitTo(checkOptions, work, pickAll([...rested, ...read]));
  const { passed } = await judgeIn(checkOptions, work, picked);
  return passed;
}

function judgeIn(
  checkOptions: CheckOptions,
  { base, frozen, baseline, accepted, setups, earlier = [] }: SharedCase,
  picked: readonly Change[],
  { roomKind, ...doubted }: { readonly roomKind?: "work" } & Pick<RoomContents, "back" | "hasDoubted"> = {},
): Promise<JudgedRoom> {
  const room = { base, frozen, picked, setups, hasDoubted: true, ...doubted, workspace: baseline.folder };
  const isOpen = (accepted ?? checkOptions.spec.deliver) === undefined;
  return judgePicked(checkOptions, { baseline, room, earlier, isOpen }, roomKind);
}

/** What no check names and the verdict would lose all the same. */
function lost({ violations, results }: JudgedRoom): readonly string[] {
  const weak = results.every(({ outcome }) => outcome === "passed") ? weakness(results) : undefined;
  return [...violations.map(({ message }) => message), ...(weak === undefined ? [] : ["any proof of the work"])];
}

function isCommand(check: TaskCheck | undefined): boolean {
  return check !== undefined && runsCommands(check);
}

function readsOf(ran: JudgedRoom["ran"]): ReadonlySet<string> | undefined {
  const all = new Set<string>();
  for (const { reads } of ran) {
    if (reads === undefined) return undefined;
    for (const path of reads) all.add(path);
  }
  return all;
}

/** The folder is gone, or it is not the one the task began in. */
export async function workspaceFault(folder: string, baseline: TaskBaseline): Promise<CheckViolation | undefined> {
  const fault = (what: string): CheckViolation => ({
    kind: "workspace-missing",
    path: folder,
    message: `the workspace ${folder} ${what}`,
  });
  const real = await realpath(folder).catch(() => undefined);
  if (real === undefined) return fault("no longer exists");
  if (real !== baseline.folder) return fault(`leads to ${real} now, not to ${baseline.folder}, where the task began`);
  const stat = await lstat(real).catch(() => undefined);
  return stat?.isDirectory() === true ? undefined : fault("is no longer a folder");
}

/** No check could be carried out, and each says so. */
export function unjudged({ spec }: CheckOptions, message: string, violations: readonly CheckViolation[] = []): Verdict {
  const startedAt = Date.now();
  const results = nameChecks(spec.checks).map(({ name, check }): CheckResult => ({
    name,
    kind: check.kind,
    outcome: "error",
    message,
    startedAt,
    durationMs: 0,
  }));
  return { results, violations, passed: false, picked: [] };
}
