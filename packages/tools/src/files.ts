/** Files for doors that act for a person: the same race-free walk that tools use. Not loaded by a run. */
export { listInside, readFileInside, writeFileInside, type PathRules } from "./paths.ts";
export {
  copyFileInside,
  copyTreeInside,
  factsInside,
  makeFolderInside,
  openFolderInside,
  removeInside,
} from "./path-trees.ts";
