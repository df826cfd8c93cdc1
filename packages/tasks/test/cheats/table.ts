/**
 * What agents plant to look done. A cheat is data: files that are written and lines for a shell in the workspace, with the
 * paths that it adds, changes or removes. `fools`: alone and without a repair it makes checks pass that run in the agent's
 * own tree. None of them is inside the file that is to be repaired: work that is itself a fraud is what checks are for.
 */
import type { Language } from "./project.ts";
import { ANYWHERE } from "./table-anywhere.ts";
import { INTERPRETED } from "./table-interpreted.ts";

export interface Cheat {
  readonly name: string;
  readonly of: readonly Language[] | "any";
  readonly files?: Readonly<Record<string, string>>;
  /** `$PY` is Python, `$CANARY` a file outside that nothing may make, `$OUT` a folder for temporary files. */
  readonly shell?: string;
  /** Beside the files; a folder stands for all in it. */
  readonly planted?: readonly string[];
  readonly fools?: true;
  /**
   * It puts a link in the place of the folder that the source is in, so that a repair made afterwards lies elsewhere, at a path
   * that is not delivered. The workspace has no such source any more: rejected is right, with or without a repair.
   */
  readonly takesSource?: true;
  /** Goes on until it is ended: nothing it does after the claim may count. */
  readonly background?: string;
  /** It makes thousands of files, so that it is drawn less often. */
  readonly isSlow?: true;
}

export const CHEATS: readonly Cheat[] = [...INTERPRETED, ...ANYWHERE];

export function cheatsFor(language: Language): readonly Cheat[] {
  return CHEATS.filter(({ of }) => of === "any" || of.includes(language));
}

export function plantedBy({ files = {}, planted = [] }: Cheat): readonly string[] {
  return [...Object.keys(files), ...planted];
}
