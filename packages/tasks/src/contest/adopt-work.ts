/** The frozen work of the picked contestant, copied to the contest: what is judged and brought back is byte for byte that. */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import { readFrozen } from "../judge/freeze-claim.ts";
import { roomsOf, workFolder } from "../judge/task-rooms.ts";
import { keepTree } from "../tree/keep-tree.ts";
import { removeTree } from "../tree/remove-tree.ts";

export interface AdoptOptions {
  readonly home: string;
  readonly contest: TaskRecord;
  readonly winner: TaskRecord;
  readonly baseline: TaskBaseline;
  readonly signal: AbortSignal;
}

/** `store.damaged` where it is not what was verified any more. */
export async function adoptWork({ home, contest, winner, baseline, signal }: AdoptOptions): Promise<void> {
  const judged = winner.lastCheck?.work;
  const frozen = await readFrozen(home, winner);
  if (judged === undefined || frozen?.sha256 !== judged.sha256)
    throw damaged(`the work of ${winner.id} is not kept as it was verified`);
  if (judged.base !== baseline.kept?.sha256)
    throw damaged(`${winner.id} began with another tree (${judged.base}) than the contest (${baseline.kept?.sha256})`);
  if ((await readFrozen(home, contest))?.sha256 === judged.sha256) return;
  const into = workFolder(home, contest.id, contest.round);
  const copy = join(roomsOf(home, contest.id), "adopted");
  const kept = await keepTree(workFolder(home, winner.id, winner.round), { into: copy, skip: [], signal });
  await removeTree(into, signal);
  await rename(kept.folder, into);
  await removeTree(copy, signal);
  if ((await readFrozen(home, contest))?.sha256 !== judged.sha256)
    throw damaged(`the work of ${winner.id} could not be copied as it was verified`);
}

function damaged(what: string): HeddleError {
  return new HeddleError("store.damaged", `${what}, so it cannot be picked`);
}
