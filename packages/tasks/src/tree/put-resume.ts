/**
 * Verified work that a process was putting into a workspace when it died. What is all in place is brought to its end; what
 * is not, and cannot be put as a whole any more, is taken back: what it replaces lies beside it until then.
 */
import { chmodSync, lstatSync, mkdirSync, renameSync, rmdirSync, statSync, unlinkSync, utimesSync } from "node:fs";
import type { BigIntStats } from "node:fs";
import { failpoint } from "@heddle/protocol/failpoints";
import type { RawPath } from "./manifest.ts";
import { openRoot } from "./put-checks.ts";
import { finish, sweep } from "./put-end.ts";
import type { Intent, PutStep } from "./put-intent.ts";
import { isAsPlanned } from "./put-seen.ts";
import { asideOf, attempt, leftIn, removeFresh, stateOf, type PutState } from "./put-state.ts";
import { secondsOf } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";

/** Whether somebody has changed something meanwhile, where the work goes. */
export async function hasOthers(intent: Intent, signal: AbortSignal): Promise<boolean> {
  return await resumed(intent, signal, async (state) => {
    for (const [index, step] of intent.steps.entries()) {
      if (state.slices.isOverSoon()) await state.slices.rest();
      if (await isOthers(step, index, state)) return true;
    }
    return false;
  });
}

/** Of work that is all in place: what it replaces goes. Returns what others have written to meanwhile. */
export async function settlePlaced(intent: Intent, signal: AbortSignal): Promise<readonly string[]> {
  return await resumed(intent, signal, async (state) => {
    await sweep(state);
    await finish(state);
    return leftIn(state);
  });
}

/** Everything is as it was before. Returns what others have changed meanwhile, which stays. Can be done twice. */
export async function takeBackPut(intent: Intent, signal: AbortSignal): Promise<readonly string[]> {
  return await resumed(intent, signal, async (state) => {
    const { slices, cursor } = state;
    const steps = [...intent.steps.entries()];
    removeFresh(state);
    for (const [index, step] of steps.toReversed()) {
      if (slices.isOverSoon()) await slices.rest();
      await removePut(step, index, state);
      failpoint("tree.during-put");
    }
    for (const [index, step] of steps) {
      if (slices.isOverSoon()) await slices.rest();
      bringBack(step, index, state);
      failpoint("tree.during-put");
    }
    for (const { path, mode, mtimeNs } of (intent.before ?? []).toReversed()) {
      attempt(() => {
        const at = `/proc/self/fd/${cursor.folder(path)}`;
        if ((statSync(at).mode & 0o7777) !== mode) chmodSync(at, mode);
        if (mtimeNs !== undefined) utimesSync(at, secondsOf(BigInt(mtimeNs)), secondsOf(BigInt(mtimeNs)));
      });
    }
    return leftIn(state);
  });
}

/** Without what is to be put: it may be gone. */
async function resumed<T>(intent: Intent, signal: AbortSignal, act: (state: PutState) => Promise<T>): Promise<T> {
  using cursor = openRoot(intent);
  using second = cursor.twin();
  using stored = cursor.twin();
  return await act(stateOf(intent, { cursor, second, stored }, { isResumed: true, signal }));
}

async function isOthers(step: PutStep, index: number, state: PutState): Promise<boolean> {
  const { path, was } = step;
  const now = lookAt(state, path);
  const isMoved = hasAside(path, index, state);
  // A put moves a file aside before anything else; a folder it removes.
  if (now === undefined) return !isMoved && was !== undefined && was.kind !== "folder";
  return isMoved ? !(await isAsPlanned(asPut(step), now, state)) : !(await isAsPlanned(step, now, state));
}

/** Nothing but what was to be put: what was there before lies aside. */
function asPut({ path, wanted }: PutStep): PutStep {
  return { path, ...(wanted === undefined ? {} : { wanted }) };
}

/** What was put there goes, and nothing else. */
async function removePut(step: PutStep, index: number, state: PutState): Promise<void> {
  const { cursor, left } = state;
  const { path, wanted, was } = step;
  const now = lookAt(state, path);
  if (now === undefined || wanted === undefined) return;
  const isPut =
    hasAside(path, index, state) || was === undefined || (was.kind === "folder" && wanted.kind !== "folder");
  if (!isPut || (was?.kind === "folder" && now.isDirectory())) return;
  if (!(await isAsPlanned(asPut(step), now, state))) return void left.add(path);
  if (!now.isDirectory()) return unlinkSync(cursor.at(path));
  cursor.leave(path);
  state.second.leave(path);
  try {
    rmdirSync(cursor.at(path));
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
    left.add(path);
  }
}

function bringBack({ path, was }: PutStep, index: number, state: PutState): void {
  const { cursor, second, left } = state;
  const aside = asideOf(state, path, index);
  const isFree = lookAt(state, path) === undefined;
  if (was?.kind === "folder" && isFree) return mkdirSync(cursor.at(path), { mode: 0o700 });
  if (!hasAside(path, index, state)) return;
  if (isFree) {
    const isBack = attempt(() => (renameSync(second.at(aside), cursor.at(path)), true));
    if (isBack === undefined) left.add(aside);
    return;
  }
  // Where others have put something since, that stays; what was there before is kept in the beginning of the task, or by git.
  left.add(path);
  unlinkSync(second.at(aside));
}

function hasAside(path: RawPath, index: number, state: PutState): boolean {
  return lookAt(state, asideOf(state, path, index)) !== undefined;
}

function lookAt({ second }: PutState, path: RawPath): BigIntStats | undefined {
  return attempt(() => lstatSync(second.at(path), { bigint: true, throwIfNoEntry: false }));
}
