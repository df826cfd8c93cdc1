/** Files for doors that act for a person: the same race-free walk that tools use. Not loaded by a run. */
export {
  listInside,
  readFileInside,
  statInside,
  writeFileInside,
  type DirectoryEntry,
  type EntryStat,
  type PathRules,
} from "./paths.ts";
export { globMatcher, type GlobMatcher } from "../search/glob-match.ts";
export {
  copyFileInside,
  copyTreeInside,
  factsInside,
  makeFolderInside,
  openFolderInside,
  removeInside,
} from "./path-trees.ts";
export { plainName, protectedPart } from "./protected.ts";
export { O_PATH } from "./own-folder.ts";
export { readProcStat } from "../commands/proc-stat.ts";
export { CLOCK_STEP_MS } from "../sandbox/tree-index.ts";
export { unifiedDiff } from "../patch/unified-diff.ts";
