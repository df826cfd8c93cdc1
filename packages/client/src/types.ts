/** What goes over the wire, as the server's own schemas describe it. */
import type { EvidenceNote, EvidenceQuery, TaskState } from "@heddle/protocol";
import type {
  ConversationsQueryInput,
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

export type {
  Agent,
  Decision,
  EvidenceEntry,
  EvidenceNote,
  InputRole,
  Message,
  NamedInput,
  TaskState,
} from "@heddle/protocol";
export type {
  Accepted,
  AcceptTaskInput as AcceptTask,
  AccountsAnswer,
  AgentList,
  AnswerInput as Answer,
  AskInput as AskAgent,
  Approval,
  ApprovalList,
  ApprovalQuestion,
  AttemptList,
  CheckpointList,
  CheckRunList,
  ClearedTasks,
  ClearTasksInput as ClearTasks,
  CompleteTaskInput as CompleteTask,
  ConfigAnswer,
  ConfigSummary,
  ConversationList,
  CreatedTask,
  CreatedToken,
  CreateTaskInput as CreateTask,
  CreateThreadInput as CreateThread,
  DoctorAnswer,
  EndedProcess,
  CreateTokenInput as CreateToken,
  EnvelopeDetail,
  EnvelopeList,
  EventBody,
  EventPage,
  EvidenceChainAnswer,
  EvidenceDetail,
  EvidenceList,
  Failure,
  FolderList,
  ForkThreadInput as ForkThread,
  GateAnswer,
  HopAnswer,
  ImportAnswer,
  HopThreadInput as HopThread,
  ImportConversationInput as ImportConversation,
  ImportedConversation,
  InputPart,
  Item,
  ItemPage,
  LintAnswer,
  LintTaskInput as LintTask,
  LoginAnswer,
  LoginCode,
  MessageList,
  ModelsAnswer,
  Notification,
  NotificationPage,
  PatchAgentInput as PatchAgent,
  PatchTaskInput as PatchTask,
  PlanAnswer,
  PlanTaskInput as PlanTask,
  ProcessList,
  PurgeAnswer,
  ReasonInput as Reason,
  RelieveTaskInput as RelieveTask,
  ResumeTaskInput as ResumeTask,
  RetryTaskInput as RetryTask,
  SandboxAnswer,
  SendOrderInput as SendOrder,
  SentMessage,
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
  TellInput as TellAgent,
  Thread,
  ThreadDetail,
  ThreadPage,
  TokenList,
  Turn,
  TurnPage,
  TurnSettings,
  UndoneTask,
  UndoTaskInput as UndoTask,
  Usage,
  UsageBy,
  UsagePage,
  ThreadDiff,
  VerdictAnswer,
  LastVerdict,
  WorkspaceList,
  WrittenInput,
} from "@heddle/protocol/http";

/** A query is text; callers pass numbers and flags. */
type Written<Q> = {
  readonly [K in keyof Q]: K extends "limit" | "after" | "before"
    ? number
    : K extends "archived" | "stat"
      ? boolean
      : Q[K];
};

/** Which entries; lists mean one of them, `tags` all. */
export type EvidenceFilter = Readonly<Omit<EvidenceQuery, "order" | "limit" | "cursor">>;

/** A note beside any thread: what it is about is known by its subject. */
export type EvidenceNoteAbout = EvidenceNote & { readonly subject: NonNullable<EvidenceNote["subject"]> };

export type ConversationsQuery = Written<ConversationsQueryInput>;
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
