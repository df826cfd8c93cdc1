/**
 * Size and score of verified work, as it was frozen and judged. The score is printed by a command in a room of the contest's
 * beginning with the work; what goes wrong with it is a reason, never a number.
 */
import { reasonOf, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { toText } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { isBroken, killedBy } from "../checks/commands.ts";
import { readFrozen } from "../judge/freeze-claim.ts";
import { openCheckRoom } from "../judge/open-check-room.ts";
import { pickAll, pickDelivered } from "../judge/pick.ts";
import { baseFolder } from "../judge/task-rooms.ts";
import { diffWork } from "../owner/diff-work.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import { completePicks } from "../tree/picked-changes.ts";
import type { Change, FrozenWork, KeptTree } from "../tree/manifest.ts";
import type { Measured } from "./decide.ts";

export interface MeasureOptions {
  readonly journal: Journal;
  /** Of the contest: its folder, spec and time. */
  readonly checkOptions: CheckOptions;
  readonly contest: TaskRecord;
  readonly baseline: TaskBaseline;
}

export async function measure(options: MeasureOptions, contestant: TaskRecord): Promise<Measured> {
  const size = await sizeOf(options, contestant);
  if (options.contest.spec.score === undefined) return size;
  try {
    return { ...size, score: await scoreOf(options, contestant) };
  } catch (error) {
    options.checkOptions.signal.throwIfAborted();
    return { ...size, score: { problem: reasonOf(error) } };
  }
}

async function sizeOf(
  { journal, checkOptions: { home, signal } }: MeasureOptions,
  contestant: TaskRecord,
): Promise<Measured> {
  try {
    const { files } = await diffWork({ journal, home }, contestant, { isStat: true, signal });
    const judged = files.filter(({ standing }) => standing !== "left-out");
    const sum = (name: "added" | "removed"): number => judged.reduce((all, file) => all + (file[name] ?? 0), 0);
    return { size: { files: judged.length, added: sum("added"), removed: sum("removed") } };
  } catch {
    signal.throwIfAborted();
    // Removed meanwhile: what is not known ranks last.
    return {};
  }
}

async function scoreOf(
  { checkOptions, contest, baseline }: MeasureOptions,
  contestant: TaskRecord,
): Promise<NonNullable<Measured["score"]>> {
  const { score } = contest.spec;
  const { home } = checkOptions;
  const [base, frozen] = [await readKeptTree(baseFolder(home, contest.id)), await readFrozen(home, contestant)];
  if (score === undefined || base === undefined || frozen === undefined)
    return { problem: "what was judged is not kept any more" };
  const picked = judgedOf(contestant, base, frozen);
  await using open = openCheckRoom(checkOptions, {
    baseline,
    room: { base, frozen, picked, workspace: baseline.folder },
  });
  await using commands = open.openCommands("command");
  const { run, timeoutMs } = score;
  const end = await commands.run({ run, cwd: ".", timeoutMs, network: false, onlyStdout: true });
  if (isBroken(end)) return { problem: end.message };
  if (end.exitCode !== 0) return { problem: killedBy(end) ?? `it ended with ${end.exitCode}` };
  const line = end.text.trimEnd().split("\n").at(-1)?.trim() ?? "";
  if (line === "" || line.length > MAX_NUMBER || !NUMBER.test(line) || !Number.isFinite(Number(line)))
    return { problem: `its last line is not a number: ${JSON.stringify(line.slice(0, MAX_NUMBER))}` };
  return { value: Number(line) };
}

const MAX_NUMBER = 40;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** What its verdict stands for. */
function judgedOf(
  { spec, deliver: accepted, lastCheck }: TaskRecord,
  base: KeptTree,
  frozen: FrozenWork,
): readonly Change[] {
  const deliver = accepted ?? spec.deliver;
  if (deliver !== undefined) return pickDelivered(base, frozen, deliver);
  const work = lastCheck?.work;
  const all = pickAll(frozen.changes);
  if (work === undefined || work.deliveredCount !== work.delivered.length) return all;
  const named = new Set(work.delivered.map(({ path }) => path));
  return completePicks(
    base.manifest,
    frozen.changes,
    all.filter(({ path }) => named.has(toText(path))),
  );
}
