/**
 * Judges work again from what was kept of it: the beginning and the frozen changes, each read again and held against the
 * hashes of the record, then the checks of the spec in rooms of their own. Nothing is written to the record. A second
 * opinion is not asked again, and what was merged is not looked at.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readlink, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { toHeddleError, type EventOf, type TaskRecord } from "@heddle/protocol";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { nameChecks } from "../checks/names.ts";
import { earlierChecks } from "../judge/flips.ts";
import { pickAll, pickDelivered } from "../judge/pick.ts";
import { baseFolder, workFolder } from "../judge/task-rooms.ts";
import { readFrozenWork } from "../tree/freeze-work.ts";
import { readKeptTree, verifyKeptTree } from "../tree/keep-tree.ts";
import { sha256 as hashOf, type Change, type FrozenWork, type KeptTree } from "../tree/manifest.ts";
import { readBefore } from "../judge/keep-before.ts";
import { verifyWork, type Verdict } from "../judge/verify.ts";
import { shownPath } from "../judge/work-changes.ts";
import { keptBaseline, lastJudgement, type TaskLog } from "./recorded.ts";

export interface Reverified {
  /** `missing`: the record or what was kept does not say enough to judge again. */
  readonly outcome: "same" | "differs" | "missing";
  /** What differs, or what is missing; one line each. */
  readonly reasons: readonly string[];
  readonly recorded?: Told;
  readonly now?: Told;
  /** What the verdict rests on, by hash. */
  readonly base?: string;
  readonly work?: string;
}

interface Told {
  readonly verdict: "passed" | "rejected" | "review";
  readonly checks: readonly { readonly name: string; readonly outcome: string; readonly message: string }[];
}

export interface AgainOptions {
  readonly home: string;
  readonly task: TaskRecord;
  readonly log: TaskLog;
  readonly signal: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  readonly masked?: readonly string[];
  readonly emptied?: readonly string[];
  /** Where the rooms appear; where the task worked when absent. */
  readonly workspace?: string;
  readonly onCheck?: (name: string) => void;
}

export async function verifyAgain(options: AgainOptions): Promise<Reverified> {
  const { home, task, log, signal } = options;
  const judgement = lastJudgement(log);
  const baseline = keptBaseline(log);
  if (judgement?.checked.work === undefined)
    return missing("it was never judged in a clean room, so there is no verdict to repeat");
  if (baseline === undefined) return missing("it began without a copy of its workspace");
  const { checked, accepted } = judgement;
  const { work } = judgement.checked;
  const evidence = await readEvidence(home, { task, work, round: checked.round, signal });
  if ("reason" in evidence) return missing(evidence.reason);
  const { base } = evidence;
  // What was written outside the workspace is in no copy of it; the record says that it was.
  const outside = checked.review?.reasons.find(({ kind }) => kind === "outside")?.files.map(toRaw);
  const frozen = { ...evidence.frozen, ...(outside === undefined ? {} : { wroteOutside: outside }) };
  if (baseline.kept.sha256 !== base.sha256) return missing("the record names two different beginnings");
  const altered = [
    ...(await verifyKeptTree(base, signal)),
    ...(await alteredWork(frozen, neededOf(task, { base, frozen, accepted }))),
  ];
  if (altered.length > 0)
    return missing(
      `${altered.length} kept ${altered.length === 1 ? "file is" : "files are"} not as recorded: ${altered.slice(0, 10).map(shownPath).join(", ")}`,
    );
  const folder = options.workspace ?? baseline.folder;
  if ((await stat(folder).catch(() => undefined))?.isDirectory() !== true)
    return missing(`${folder}, where its checks are run, does not exist; make an empty folder there`);
  const checkOptions: CheckOptions = {
    folder,
    spec: task.spec,
    home,
    signal,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.masked === undefined ? {} : { masked: options.masked }),
    ...(options.emptied === undefined ? {} : { emptied: options.emptied }),
    onCheck: (name) => Promise.resolve(options.onCheck?.(name)),
  };
  const earlier = earlierChecks(log, base.sha256);
  const before = await readBefore(home, task.id);
  // Who else worked there is in no copy either.
  const beside = checked.review?.reasons.find(({ kind }) => kind === "beside");
  const began = { ...baseline, folder };
  const judged = { taskId: task.id, baseline: began, base, frozen };
  const verdict = await verifyWork(checkOptions, { ...judged, accepted, before, beside, earlier });
  const [recorded, now] = [resultOf(task, checked), resultOf(task, verdict)];
  const reasons = differences({ checked, recorded }, { verdict, now });
  const outcome = reasons.length === 0 ? "same" : "differs";
  return { outcome, reasons, recorded, now, base: base.sha256, work: frozen.sha256 };
}

export interface Kept {
  /** How many files and links were read again. */
  readonly files: number;
  /** Kept files that are not as recorded. */
  readonly altered: readonly string[];
  /** Why nothing, or not all, could be compared. */
  readonly missing?: string;
}

/** Whether what was kept of a task is what the record names, without running anything. */
export async function checkKept({
  home,
  task,
  log,
  signal,
}: Pick<AgainOptions, "home" | "task" | "log" | "signal">): Promise<Kept> {
  const judgement = lastJudgement(log);
  // A task that was never judged has nothing kept to compare with.
  if (judgement?.checked.work === undefined) return { files: 0, altered: [] };
  const { checked, accepted } = judgement;
  const evidence = await readEvidence(home, { task, work: judgement.checked.work, round: checked.round, signal });
  if ("reason" in evidence) return { files: 0, altered: [], missing: evidence.reason };
  const needed = neededOf(task, { ...evidence, accepted });
  const altered = [...(await verifyKeptTree(evidence.base, signal)), ...(await alteredWork(evidence.frozen, needed))];
  return { files: evidence.base.manifest.size + needed.length, altered: altered.map(shownPath) };
}

export function missing(reason: string): Reverified {
  return { outcome: "missing", reasons: [reason] };
}

interface Evidence {
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
}

async function readEvidence(
  home: string,
  {
    task,
    work,
    round,
  }: {
    readonly task: TaskRecord;
    readonly work: NonNullable<EventOf<"task.checked">["work"]>;
    readonly round: number;
    readonly signal: AbortSignal;
  },
): Promise<Evidence | { readonly reason: string }> {
  const gone = `no longer exists; heddle task collect and heddle task delete remove it`;
  try {
    const base = await readKeptTree(baseFolder(home, task.id));
    if (base === undefined) return { reason: `the copy of the workspace from the beginning ${gone}` };
    const frozen = await readFrozenWork(workFolder(home, task.id, round));
    if (frozen === undefined) return { reason: `the work that was judged ${gone}` };
    if (base.sha256 !== work.base) return { reason: "the kept beginning is not the one that was judged on" };
    if (frozen.sha256 !== work.sha256) return { reason: "the kept work is not the one that was judged" };
    return { base, frozen };
  } catch (error) {
    return { reason: toHeddleError(error).message };
  }
}

/** Changes whose content goes into a room; of the others only the hash was kept where the spec says what is delivered. */
function neededOf(
  { spec }: TaskRecord,
  { base, frozen, accepted }: Evidence & { readonly accepted: readonly string[] | undefined },
): readonly Change[] {
  const deliver = accepted ?? spec.deliver;
  return deliver === undefined ? pickAll(frozen.changes) : pickDelivered(base, frozen, deliver);
}

async function alteredWork({ folder }: FrozenWork, needed: readonly Change[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const { path, now } of needed) {
    if (now?.kind !== "file" && now?.kind !== "link") continue;
    const at = toSystem(`${toRaw(folder)}/${path}`);
    const found = await (now.kind === "link" ? linkHash(at) : fileHash(at)).catch(() => undefined);
    if (found !== now.sha256) wrong.push(path);
  }
  return wrong;
}

async function linkHash(at: string | Buffer): Promise<string> {
  return hashOf(await readlink(at, { encoding: "buffer" }));
}

async function fileHash(at: string | Buffer): Promise<string> {
  const digest = createHash("sha256");
  const file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW);
  await pipeline(file.createReadStream(), digest);
  return digest.digest("hex");
}

interface Judged extends Pick<Verdict, "results" | "violations"> {
  readonly review?: Verdict["review"] | undefined;
}

/** Only the checks of the spec: what came of a merge is another matter. */
function resultOf({ spec }: TaskRecord, { results, violations, review }: Judged): Told {
  const own = new Set(nameChecks(spec.checks).map(({ name }) => name));
  const checks = results
    .filter(({ name, kind }) => own.has(name) || kind === "workspace")
    .map(({ name, outcome, message }) => ({ name, outcome, message }));
  const isClean = violations.length === 0 && checks.every(({ outcome }) => outcome === "passed");
  return { verdict: !isClean ? "rejected" : reasonsOf({ review }).length === 0 ? "passed" : "review", checks };
}

/** Whether work can be delivered is no part of the verdict on it. */
function reasonsOf({ review }: Pick<Judged, "review">): readonly string[] {
  return (review?.reasons ?? []).map(({ kind }) => kind).filter((kind) => kind !== "delivery");
}

function differences(
  { checked, recorded }: { readonly checked: EventOf<"task.checked">; readonly recorded: Told },
  { verdict, now }: { readonly verdict: Verdict; readonly now: Told },
): readonly string[] {
  const reasons: string[] = [];
  if (recorded.verdict !== now.verdict) reasons.push(`the verdict was ${recorded.verdict} and is ${now.verdict} now`);
  const names = new Set([...recorded.checks, ...now.checks].map(({ name }) => name));
  for (const name of names) {
    const then = recorded.checks.find((one) => one.name === name);
    const found = now.checks.find((one) => one.name === name);
    if (then?.outcome === found?.outcome) continue;
    reasons.push(
      `${name}: ${then?.outcome ?? "not run"} then, ${found?.outcome ?? "not run"} now${found === undefined ? "" : ` (${found.message})`}`,
    );
  }
  const kinds = (one: Judged): string => reasonsOf(one).join(", ");
  if (recorded.verdict === "review" && now.verdict === "review" && kinds(checked) !== kinds(verdict))
    reasons.push(`it was put to its owner for ${kinds(checked)}, now it would be for ${kinds(verdict)}`);
  const violationsOf = (one: Judged): string =>
    one.violations
      .map(({ message }) => message)
      .toSorted()
      .join("; ");
  if (violationsOf(checked) !== violationsOf(verdict))
    reasons.push(`violations then: ${violationsOf(checked) || "none"}; now: ${violationsOf(verdict) || "none"}`);
  if (reasons.length > 0 || recorded.verdict !== "passed") return reasons;
  const [before, after] = [checked.work, verdict.work];
  if (before?.deliveredCount === after?.deliveredCount && before?.othersCount === after?.othersCount) return reasons;
  return [`it stood for ${before?.deliveredCount ?? 0} changed files, now for ${after?.deliveredCount ?? 0}`];
}
