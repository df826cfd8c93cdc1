export type {
  Append,
  Appended,
  Damage,
  ExportPart,
  GitInfo,
  Journal,
  Notice,
  Purge,
  QueuedRow,
  ReadOptions,
  TailOptions,
  ThreadPageWish,
  ThreadQueries,
  ThreadRow,
  TurnRow,
  VerifyReport,
  VerifyWatch,
} from "./journal.ts";
export type { NotificationQueries, NotificationRow, TaskPageWish, TaskQueries } from "./task-queries.ts";
export { USAGE_KEYS, type UsageKey, type UsageRow, type UsageWish } from "./usage-queries.ts";
export { verifyExport, type ExportReport } from "./verify-export.ts";
export { isSealedBy, seal } from "./seal.ts";
export type { OpenJournalOptions } from "./open-options.ts";
export { breathe, LONG_CHARS } from "./breathe.ts";
export { openJournal } from "./sqlite.ts";
export { createRedactor, redactText, type Redactor } from "./redact.ts";
export { createStreamRedactor, type StreamRedactor } from "./redact-stream.ts";
