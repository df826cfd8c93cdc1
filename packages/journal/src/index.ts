export type {
  Append,
  Appended,
  Damage,
  Journal,
  Notice,
  ReadOptions,
  TailOptions,
  ThreadQueries,
  ThreadRow,
  TurnRow,
  VerifyReport,
} from "./journal.ts";
export { openJournal, type OpenJournalOptions } from "./sqlite.ts";
export { createRedactor, redactText, type Redactor } from "./redact.ts";
export { createStreamRedactor, type StreamRedactor } from "./redact-stream.ts";
