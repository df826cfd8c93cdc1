export type {
  Append,
  Appended,
  Damage,
  Durability,
  ExportOptions,
  ExportPart,
  Journal,
  Notice,
  Purge,
  ReadOptions,
  TailOptions,
  VerifyReport,
  VerifyWatch,
} from "./journal.ts";
export type { AppendGuard } from "./record/guard.ts";
export type { HeldLease, LeaseRow, Leases } from "./record/leases.ts";
export type { InTransaction, TicketChange, TicketName, TicketWriter } from "./record/tickets.ts";
export { blobsFolder } from "./blobs/blob-paths.ts";
export type { BlobQueries, BlobUse } from "./queries/blobs.ts";
export type { EvidenceFork, EvidenceQueries, EvidenceRecord, QueryLimits } from "./queries/evidence.ts";
export { attachmentName, type MarkKind, type MarkQuery, type MarkQueries } from "./queries/marks.ts";
export type { MessageQueries, MessageRow } from "./queries/messages.ts";
export type { NotificationQueries, NotificationRow } from "./queries/notifications.ts";
export type { TaskPageRequest, TaskQueries } from "./queries/tasks.ts";
export type {
  GitInfo,
  QueuedRow,
  Used,
  ThreadEnvelopeRow,
  ThreadPageRequest,
  ThreadQueries,
  OpenApprovalRow,
  OpenItemRow,
  ThreadRow,
  TurnRow,
} from "./queries/threads.ts";
export { USAGE_KEYS, type UsageKey, type UsageRequest, type UsageRow } from "./queries/usage.ts";
export { isSealedBy, seal } from "./evidence/seal.ts";
export { verifyExport, type ExportReport } from "./evidence/verify-export.ts";
export { breathe, LONG_CHARS } from "./record/breathe.ts";
export { adoptStore, openJournal, type OpenJournalOptions } from "./open-journal.ts";
export { createRedactor, redactText, type Redactor } from "./redaction/redact.ts";
export { createStreamRedactor, type StreamRedactor } from "./redaction/redact-stream.ts";
