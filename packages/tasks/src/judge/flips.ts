/**
 * A check that comes out otherwise than before, at the beginning or in an earlier round, although nothing it read has changed
 * is run again, on the beginning and on the same files, a bounded number of times. Where the outcomes differ on the same files
 * it is flaky: it neither rejects work nor speaks for it.
 */
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { nameChecks, type NamedCheck } from "../checks/names.ts";
import { runCheck, type CheckRoom, type Ran } from "../checks/run-check.ts";
import type { Journal } from "@heddle/journal";
import type { CheckResult, StoredEvent, TaskBaseline } from "@heddle/protocol";
import type { JudgedWork } from "@heddle/protocol/tasks";
import { toText } from "@heddle/tools/raw-path";
import type { Change } from "../tree/manifest.ts";
import { runsCommands, seesOutside } from "./named-work.ts";
import { openCheckRoom } from "./open-check-room.ts";
import { telling } from "./pick.ts";

const MAX_AGAIN = 3;

/** What checks found on other work of the same beginning. */
export interface Earlier {
  readonly results: readonly CheckResult[];
  readonly work: Pick<JudgedWork, "sha256" | "delivered" | "deliveredCount">;
}

/** The last ones say enough: a check that flips is run again anyway. */
const MAX_ROUNDS = 20;

/** In earlier rounds of a task. `base`: the beginning it is judged on, by its hash; what was judged on another cannot be compared. */
export async function readEarlierChecks(journal: Journal, stream: string, base: string): Promise<readonly Earlier[]> {
  const kinds = ["task.checked"] as const;
  return earlierChecks(await journal.marks.events({ stream, kinds, name: base, newest: MAX_ROUNDS }), base);
}

/** The same from a log that was read whole. */
export function earlierChecks(log: readonly StoredEvent[], base: string): readonly Earlier[] {
  return log
    .flatMap(({ body }) => (body.type === "task.checked" && body.work?.base === base ? [body] : []))
    .flatMap(({ results, work }) => (work === undefined ? [] : [{ results, work }]))
    .slice(-MAX_ROUNDS);
}

export interface Flips {
  readonly baseline: TaskBaseline;
  readonly room: RoomContents;
  readonly open: CheckRoom;
  readonly first: readonly Ran[];
  readonly earlier: readonly Earlier[];
}

export async function settleFlips(checkOptions: CheckOptions, flips: Flips): Promise<readonly Ran[]> {
  const names = nameChecks(checkOptions.spec.checks);
  const settled: Ran[] = [];
  for (const [index, one] of flips.first.entries()) {
    const named = names[index];
    const flip = named === undefined ? undefined : flipOf(named, one, flips);
    settled.push(
      named === undefined || flip === undefined ? one : await again(checkOptions, named, { one, ...flips, ...flip }),
    );
  }
  return settled;
}

interface Flip {
  /** It was the same work to the last byte, and all that the check can see: it need not flip once more. */
  readonly isCertain: boolean;
}

function flipOf({ name, check }: NamedCheck, one: Ran, { baseline, room, earlier }: Flips): Flip | undefined {
  const isOutside = seesOutside(check);
  if (!isOutside && !runsCommands(check)) return undefined;
  const flipped = earlier.filter(({ results, work }) => {
    const then = results.find((result) => result.name === name);
    return then !== undefined && isPass(then) !== hasPassed(one) && isSameFor(then, work, { one, room });
  });
  if (flipped.length > 0)
    return { isCertain: !isOutside && flipped.some(({ work }) => work.sha256 === room.frozen?.sha256) };
  const isFlip = runsCommands(check) && baseline.passed.includes(name) !== hasPassed(one) && isUntouched(one, room);
  return isFlip ? { isCertain: false } : undefined;
}

/** It read nothing that is otherwise than at the beginning. */
function isUntouched({ reads }: Ran, { picked }: RoomContents): boolean {
  // That something is gone is seen by no reading of it.
  if (reads === undefined || picked.some(({ how }) => how === "removed")) return picked.length === 0;
  return !telling(picked).some(({ path }) => reads.has(path));
}

/** What it read then or now has the content it had, and nothing has come or gone. */
function isSameFor(
  { restsOn, areReadsKnown }: CheckResult,
  work: Earlier["work"],
  { one, room }: { readonly one: Ran; readonly room: RoomContents },
): boolean {
  if (work.deliveredCount > work.delivered.length) return work.sha256 === room.frozen?.sha256;
  const changes = telling(room.picked);
  const then = new Map(work.delivered.map((file) => [file.path, file]));
  const now = new Map(changes.map((change) => [toText(change.path), change]));
  const isKnown = areReadsKnown !== false && one.reads !== undefined;
  const read = new Set([...(restsOn ?? []), ...changes.filter(({ path }) => one.reads?.has(path)).map(textOf)]);
  for (const path of new Set([...then.keys(), ...now.keys()])) {
    const [before, after] = [then.get(path), now.get(path)];
    if ((before?.how ?? "changed") !== (after?.how ?? "changed")) return false;
    if (isKnown && !read.has(path)) continue;
    if (before === undefined || (before.sha256 ?? "") !== (after?.now?.sha256 ?? "")) return false;
  }
  return true;
}

function textOf({ path }: Change): string {
  return toText(path);
}

async function again(
  checkOptions: CheckOptions,
  named: NamedCheck,
  { one, baseline, room, open, isCertain }: Flips & Flip & { readonly one: Ran },
): Promise<Ran> {
  const { frozen: _, back: __, ...shared } = room;
  await using beginning = openCheckRoom(checkOptions, { baseline, room: { ...shared, picked: [] } });
  const before = baseline.passed.includes(named.name);
  // What is outside may have changed for good since the beginning; within a moment it should not.
  const isOther = async (): Promise<boolean> =>
    !seesOutside(named.check) && hasPassed(await run(checkOptions, named, beginning)) !== before;
  let best = one;
  let isFlaky = isCertain;
  for (let tries = 0; tries < MAX_AGAIN; tries += 1) {
    if (isFlaky && hasPassed(best)) break;
    const onWork = await run(checkOptions, named, open);
    if (hasPassed(onWork) && !hasPassed(best)) best = onWork;
    isFlaky ||= hasPassed(onWork) !== hasPassed(one) || (await isOther());
  }
  return isFlaky ? { ...best, result: { ...best.result, isFlaky: true } } : one;
}

async function run(checkOptions: CheckOptions, named: NamedCheck, room: CheckRoom): Promise<Ran> {
  checkOptions.signal.throwIfAborted();
  await checkOptions.onCheck?.(named.name, "again");
  return runCheck(named, room);
}

function hasPassed({ result }: Ran): boolean {
  return isPass(result);
}

function isPass({ outcome }: CheckResult): boolean {
  return outcome === "passed";
}
