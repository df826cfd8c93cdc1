/** Links with the absolute path of a draft or worktree: once delivered they lead nowhere. */
import { listed } from "../checks/shown.ts";
import type { Change } from "../tree/manifest.ts";
import { shownPath } from "../judge/work-changes.ts";

/** The problem, if any. Absolute links that lead elsewhere are not part of what was judged. */
export function tiedLinks(picked: readonly Change[]): string | undefined {
  const tied = picked.filter(({ now }) => now?.target?.startsWith("/") === true);
  if (tied.length === 0) return undefined;
  const names = listed(tied.map(({ path }) => shownPath(path)));
  return `links with the whole path of the folder where the task works lead nowhere once the work is delivered: ${names}; make them relative (ln -sr)`;
}
