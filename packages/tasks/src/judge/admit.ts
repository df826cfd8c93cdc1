/** Which of the picked changes go into a room, in which form, and why others do not. */
import type { JudgedWork, TaskSpec, WorkFile } from "@heddle/protocol/tasks";
import { toText } from "@heddle/tools/raw-path";
import { foldersOf, type Change, type FrozenWork, type KeptTree, type RawPath } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { inGitForm } from "./git-form.ts";
import { linksOut } from "./links-out.ts";

export interface Admitted {
  /** A whole tree with the beginning. */
  readonly picked: readonly Change[];
  /** What of the work is not judged, or not as it was made, and why. */
  readonly why: ReadonlyMap<RawPath, string>;
}

export interface AdmitPlace {
  readonly spec: Pick<TaskSpec, "worktree">;
  /** Where the room is. */
  readonly folder: string;
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
}

const LEADS_OUT = "a link that leads out of the workspace is not judged";

export function admit({ spec, folder, base, frozen }: AdmitPlace, picks: readonly Change[]): Admitted {
  const why = new Map<RawPath, string>();
  const isIn = ({ path }: Change): boolean => !why.has(path) && ![...foldersOf(path)].some((at) => why.has(at));
  const complete = (): readonly Change[] =>
    completePicks(base.manifest, frozen.changes, picks.filter(isIn)).filter(isIn);
  let picked = complete();
  // Without one link another leads elsewhere. Each time there are fewer.
  for (let out = linksOut(base.manifest, picked, folder); out.size > 0;) {
    for (const path of out) why.set(path, LEADS_OUT);
    picked = complete();
    out = linksOut(base.manifest, picked, folder);
  }
  if (spec.worktree === undefined || spec.worktree.merge === "none") return { picked, why };
  const carried = inGitForm(base.manifest, picked);
  return { picked: carried.picked, why: new Map([...why, ...carried.why]) };
}

type Told = Pick<JudgedWork, "delivered" | "others">;

/** Says it of the files that it is about. */
export function withWhy<T extends Told>(told: T, why: Admitted["why"]): T {
  if (why.size === 0) return told;
  const texts = new Map([...why].map(([path, text]) => [toText(path), text]));
  const add = (file: WorkFile): WorkFile => {
    const text = texts.get(file.path);
    return text === undefined ? file : { ...file, why: text };
  };
  return { ...told, delivered: told.delivered.map(add), others: told.others.map(add) };
}
