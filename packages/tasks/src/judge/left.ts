/**
 * What the agent of a task had changed when it stopped without a claim that is judged: names and hashes, no content. The
 * work of a claim says the same of its round. It costs one stat for each entry of the workspace, and reads what changed.
 */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { toHeddleError, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import { skippedFor } from "../attempt/baseline.ts";
import { freezeWork, readFrozenWork } from "../tree/freeze-work.ts";
import type { Change, FrozenWork } from "../tree/manifest.ts";
import { MANIFEST } from "../tree/manifest-file.ts";
import { removeTree } from "../tree/remove-tree.ts";
import { openToOwner } from "../tree/tree-root.ts";
import { readBase } from "./freeze-claim.ts";
import { leftFolder, roomsOf, roundOf, workFolder } from "./task-rooms.ts";

export interface NoteOptions {
  readonly home: string;
  readonly task: Pick<TaskRecord, "id" | "round">;
  readonly folder: string;
  readonly baseline: TaskBaseline;
  /** Ends what the agent has running; false: it works on, and whoever follows that notes it. */
  readonly quiet: () => Promise<boolean>;
  readonly log: (line: string) => void;
}

/** Whoever waits for the task waits for it. */
const NOTE_MS = 30_000;

/** Never throws: without it `readLeft` says that nothing is known, and whoever asks is careful. */
export async function noteLeft(options: NoteOptions): Promise<void> {
  const { home, task, baseline, log } = options;
  // Before the first prompt nothing is the agent's; what was claimed is frozen; what was too large to keep compares with nothing.
  if (task.round === 0 || baseline.kept === undefined || existsSync(workFolder(home, task.id, task.round))) return;
  try {
    if (await options.quiet()) await note(options, AbortSignal.timeout(NOTE_MS));
  } catch (error) {
    log(`${task.id}: what its agent changed could not be recorded: ${toHeddleError(error).message}`);
  }
}

async function note({ home, task, folder, baseline }: NoteOptions, signal: AbortSignal): Promise<void> {
  const base = await readBase(home, task, baseline);
  const into = leftFolder(home, task.id, task.round);
  const nothing = (): boolean => false;
  openToOwner(folder);
  await freezeWork(folder, base, { into, skip: skippedFor({ home }), wanted: nothing, wantedBelow: nothing, signal });
  // All is told against the beginning, so that the newest says it all.
  for (const name of await readdir(roomsOf(home, task.id)))
    if (name.startsWith("left-") && (roundOf(name) ?? task.round) < task.round)
      await removeTree(join(roomsOf(home, task.id), name), signal);
}

/** Of the last round; undefined: nothing was noted, or it cannot be read. */
export async function readNoted(
  home: string,
  { id, round }: Pick<TaskRecord, "id" | "round">,
): Promise<FrozenWork | undefined> {
  return await readFrozenWork(leftFolder(home, id, round)).catch(() => undefined);
}

export interface Left {
  readonly changes: readonly Change[];
  /** Also of the last round that the agent worked in. */
  readonly isKnown: boolean;
}

/** Changes to content with one of these hashes, as far as they are on record; there may be others with them. */
export async function readLeft(
  home: string,
  { id, round }: Pick<TaskRecord, "id" | "round">,
  hashes: ReadonlySet<string>,
): Promise<Left> {
  const folder = roomsOf(home, id);
  const names = await readdir(folder).catch(() => []);
  const changes: Change[] = [];
  let isKnown = false;
  for (const name of names) {
    const of = roundOf(name);
    if (of === undefined) continue;
    try {
      // Most say nothing of it, and need not be understood to know that.
      const text = await readFile(join(folder, name, MANIFEST), "latin1");
      if ([...hashes].some((hash) => text.includes(hash)))
        changes.push(...((await readFrozenWork(join(folder, name)))?.changes ?? []));
      isKnown ||= of === round;
    } catch {
      // What cannot be read says nothing.
    }
  }
  return { changes, isKnown };
}
