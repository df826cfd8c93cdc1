/** The schemas of tasks, for whoever reads specs, checks input or describes it. Apart, because no run of a turn needs them. */
export {
  CheckResult,
  CheckViolation,
  FileRole,
  JudgedWork,
  LeafCheck,
  MAX_ACCEPTED_FILES,
  MAX_LEFT_FILES,
  MAX_WORK_FILES,
  TaskBaseline,
  TaskCheck,
  WorkFile,
  WorkReview,
} from "./task-checks.ts";
export { Culprit, PromptReason, TaskSource, WaitCause } from "./task-events.ts";
export {
  FailureClass,
  StallAction,
  TaskBudget,
  TaskRetries,
  TaskSchedule,
  TaskSetup,
  TaskSpec,
  TaskStep,
  TaskWorktree,
  type TaskSpecInput,
} from "./task-spec.ts";
