/** Links that lead to the folder of a draft or worktree by its whole path: elsewhere, or once it is gone, they lead nowhere. */
import { listed } from "../checks/shown.ts";
import type { Change } from "../tree/manifest.ts";
import { shownPath } from "../judge/work-changes.ts";

/** What to say of them; undefined: there are none. An absolute link that leads elsewhere is not among what was judged. */
export function tiedLinks(picked: readonly Change[]): string | undefined {
  const tied = picked.filter(({ now }) => now?.target?.startsWith("/") === true);
  if (tied.length === 0) return undefined;
  const names = listed(tied.map(({ path }) => shownPath(path)));
  return `links with the whole path of the folder where the task works lead nowhere once the work is delivered: ${names}; make them relative (ln -sr)`;
}
