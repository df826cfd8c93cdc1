/** How the contestants stand, read from their tasks; the contest keeps no copy that could differ. */
import { hasEnded, type TaskRecord } from "@heddle/protocol";
import type { Contestant, ContestRow } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { readLog, type TaskLog } from "../owner/recorded.ts";
import { isAtRest } from "./statistics.ts";
import { decide, orderOf, pickOf, rowsOf, type ContestCase, type Measured, type Standing } from "./decide.ts";

/** What the contest says to a contestant that it pauses; only such a one is resumed with it. */
export const PAUSED_WITH_CONTEST = "its contest is paused";

export type Measures = ReadonlyMap<number, Measured>;

export async function contestCase(
  journal: Journal,
  { spec, contest }: TaskRecord,
  measures: Measures = new Map(),
): Promise<ContestCase> {
  const standings: Standing[] = [];
  for (const contestant of contest?.contestants ?? []) {
    const measured = measures.get(contestant.number);
    const standing = await standingOf(journal, contestant);
    standings.push(measured === undefined ? standing : { ...standing, measured });
  }
  return { pick: pickOf(spec), order: orderOf(spec), standings, refused: contest?.refused ?? [] };
}

/** The table of a contest as it is now: what was measured at the pick stays, cost and time are those of now. */
export async function contestRows(journal: Journal, task: TaskRecord): Promise<readonly ContestRow[]> {
  const contest = await contestCase(journal, task);
  const known = new Map(task.contest?.rows?.map((row) => [row.number, row]));
  return rowsOf(contest).map((row): ContestRow => {
    const before = known.get(row.number);
    if (before === undefined) return row;
    const { rank: _, ...bare } = row;
    const { isPicked, rank, size, score } = before;
    const isRefused = task.contest?.refused.includes(row.number) === true;
    return {
      ...bare,
      isPicked: isPicked && task.contest?.picked?.number === row.number,
      // Why it had stopped, not that it was cancelled with the contest afterwards.
      why: isAtRest(before) && !isRefused ? before.why : row.why,
      ...(rank === undefined ? {} : { rank }),
      ...(size === undefined ? {} : { size }),
      ...(score === undefined ? {} : { score }),
    };
  });
}

/** Whether the contest, which waits, can do something by now. */
export async function isDue(journal: Journal, task: TaskRecord): Promise<"due" | "waits" | "stuck"> {
  const act = decide(await contestCase(journal, task));
  if (act.kind !== "wait") return "due";
  return act.isStuck ? "stuck" : "waits";
}

async function standingOf(journal: Journal, { number, name, taskId }: Contestant): Promise<Standing> {
  const who = { number, name, taskId };
  const task = await journal.tasks.get(taskId);
  const nothing = { isCostPartial: false, timeMs: 0, turns: 0, tokens: 0 };
  if (task === undefined)
    return {
      ...who,
      ...nothing,
      isCostPartial: true,
      state: "deleted",
      stands: "stopped",
      why: "its task was deleted",
    };
  return { ...who, state: task.state, ...costOf(task), ...(await verdictOf(journal, task)) };
}

function costOf({
  spent,
  openPrompt,
}: TaskRecord): Pick<Standing, "costUsd" | "isCostPartial" | "timeMs" | "turns" | "tokens"> {
  const { costUsd, timeMs, turns, tokens } = spent;
  // The cost of a turn is known when it has ended.
  const isCostPartial = spent.isCostPartial || openPrompt !== undefined;
  const isUnknown = isCostPartial && costUsd === 0;
  return { ...(isUnknown ? {} : { costUsd }), isCostPartial, timeMs, turns, tokens };
}

async function verdictOf(
  journal: Journal,
  task: TaskRecord,
): Promise<Pick<Standing, "stands" | "why" | "verifiedAt" | "branch">> {
  const state = task.state === "archived" ? (task.stateBefore ?? task.state) : task.state;
  if (state === "verified") {
    const verifiedAt = positionOf(await readLog(journal, task.id), "task.verified");
    const branch = task.merged?.how === "branch" ? { branch: task.merged.ref } : {};
    return { stands: "verified", why: "verified", verifiedAt, ...branch };
  }
  if (state === "paused") {
    const cause = pauseCause(await readLog(journal, task.id));
    const isHeld = cause === "user" || cause === "review";
    return { stands: isHeld ? "held" : "stopped", why: `paused (${cause}): ${task.reason ?? ""}` };
  }
  if (!hasEnded(task)) return { stands: "under-way", why: task.wait?.message ?? `is ${state}` };
  return { stands: "stopped", why: state === "claimed" ? "claimed by the user, not verified" : ended(task, state) };
}

function ended({ reason }: TaskRecord, state: string): string {
  return reason === undefined ? state : `${state}: ${reason}`;
}

function positionOf(log: TaskLog, type: "task.verified"): number {
  return log.findLast(({ body }) => body.type === type)?.position ?? Number.MAX_SAFE_INTEGER;
}

function pauseCause(log: TaskLog): string {
  const last = log.findLast(({ body }) => body.type === "task.paused");
  return last?.body.type === "task.paused" ? last.body.cause : "user";
}
