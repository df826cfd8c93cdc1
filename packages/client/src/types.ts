/** What goes over the wire, as the server's own schemas describe it. */
import type { TaskState } from "@heddle/protocol";
import type {
  NotificationsQueryInput,
  StreamedDelta,
  StreamedEvent,
  TaskDiffQueryInput,
  TaskLogQueryInput,
  TasksQueryInput,
  ThreadsQueryInput,
  UsageBy,
  UsageQueryInput,
} from "@heddle/protocol/http";

export type { Decision, TaskState } from "@heddle/protocol";
export type {
  Accepted,
  AcceptTaskInput as AcceptTask,
  AccountsAnswer,
  AnswerInput as Answer,
  Approval,
  ApprovalList,
  ApprovalQuestion,
  AttemptList,
  CheckRunList,
  ClearedTasks,
  ClearTasksInput as ClearTasks,
  CompleteTaskInput as CompleteTask,
  ConfigSummary,
  CreatedTask,
  CreateTaskInput as CreateTask,
  CreateThreadInput as CreateThread,
  EventBody,
  EventPage,
  Failure,
  FolderList,
  ForkThreadInput as ForkThread,
  InputPart,
  Item,
  ItemPage,
  ModelsAnswer,
  Notification,
  NotificationPage,
  PlanAnswer,
  PlanTaskInput as PlanTask,
  ReasonInput as Reason,
  RelieveTaskInput as RelieveTask,
  ResumeTaskInput as ResumeTask,
  RetryTaskInput as RetryTask,
  SandboxAnswer,
  SendOrderInput as SendOrder,
  ServerAnswer,
  SinkList,
  SinkTest,
  StallList,
  StartTurnInput as StartTurn,
  StateAnswer,
  StreamedDelta,
  StreamedEvent,
  Task,
  TaskDiff,
  TaskPage,
  TaskVerification,
  Thread,
  ThreadDetail,
  ThreadPage,
  Turn,
  TurnPage,
  TurnSettings,
  UndoneTask,
  UndoTaskInput as UndoTask,
  Usage,
  UsageBy,
  UsagePage,
  WorkspaceList,
} from "@heddle/protocol/http";

/** A query is text; callers pass numbers and flags. */
type Written<Q> = {
  readonly [K in keyof Q]: K extends "limit" | "after" ? number : K extends "archived" | "stat" ? boolean : Q[K];
};

export type ThreadsQuery = Written<ThreadsQueryInput>;
export type TasksQuery = Omit<Written<TasksQueryInput>, "state"> & { readonly state?: readonly TaskState[] };
export type TaskDiffQuery = Written<TaskDiffQueryInput>;
export type TaskLogQuery = Written<TaskLogQueryInput>;
export type NotificationsQuery = Written<NotificationsQueryInput>;
export type UsageQuery = Omit<Written<UsageQueryInput>, "by"> & { readonly by?: readonly UsageBy[] };

/** What following events brings. Only `event` is stored; the rest is live. */
export type Followed =
  | { readonly kind: "event"; readonly event: StreamedEvent }
  | { readonly kind: "delta"; readonly delta: StreamedDelta }
  /** Everything that was stored when the stream was opened has been read. */
  | { readonly kind: "caughtUp" }
  /** This reader was too slow: deltas were left out; the items' ends have the whole text. */
  | { readonly kind: "lagged"; readonly after: number; readonly deltas?: number };
