/** The schemas of tasks, for reading specs, checking input and describing it. Apart, because no run of a turn needs them. */
export * from "./contest-shapes.ts";
export * from "./task-checks.ts";
export { Culprit, PromptReason, TaskSource, WaitCause } from "../events/task-events.ts";
export * from "./task-spec.ts";
