/** What `heddle verify` needs: loaded by nothing that only runs turns. */
export {
  examine,
  nothingExamined,
  recordLevels,
  replayLevels,
  resultOf,
  type Examination,
  type LevelExamined,
  type Result,
} from "./evidence/examine.ts";
export { recordFindings } from "./evidence/codes.ts";
export { changedPaths, loadManifest, storeManifest, takeManifest, type Manifest } from "./manifests/manifest.ts";
export { finding, type Code, type Finding, type Level } from "./replay/findings.ts";
