export { login, type AccessClient } from "./access.ts";
export type { AgentClient } from "./agents.ts";
export { HeddleApiError } from "./api-error.ts";
export { HeddleClient, type Page, type TurnResult } from "./client.ts";
export type { EvidenceClient } from "./evidence.ts";
export type { NotificationClient } from "./notifications.ts";
export type { RunTaskOptions, TaskClient } from "./tasks.ts";
export type { FollowOptions } from "./follow.ts";
export type { ClientOptions } from "./http.ts";
export {
  connectSessions,
  EnvelopeSession,
  SessionConnection,
  type ConnectOptions,
  type SessionNote,
  type ToolCallOptions,
} from "./sessions.ts";
export type * from "./types.ts";
