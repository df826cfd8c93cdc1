export type { NewTask, Tasks } from "./tasks.ts";
export { openTasks, type TasksOptions } from "./open-tasks.ts";
export { parseDuration } from "./spec/durations.ts";
export { readFrontMatter, type FrontMatter } from "./spec/front-matter.ts";
export { openLoomSettings, type OpenLoomSettings } from "./spec/openloom.ts";
export { problemLine, SpecError, type Problem } from "./spec/places.ts";
export { readSpecFiles, type FoundSpec, type FoundSpecs } from "./spec/read-files.ts";
export { readSpec, type ReadSpecs, type SpecOptions, type SpecText } from "./spec/read-spec.ts";
export { taskSchema } from "./spec/json-schema.ts";
