/** What reads the lines of a record, by the program that keeps it. */
import { readClaudeRecord } from "./claude-record.ts";
import { readCodexRecord } from "./codex-record.ts";
import { readCopilotRecord } from "./copilot-record.ts";
import { readGeminiRecord } from "./gemini-record.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";
import type { RecordKind } from "./known.ts";
import { readOpenCodeRecord } from "./opencode-record.ts";
import { readQwenRecord } from "./qwen-record.ts";

export const RECORD_READERS: Readonly<Record<RecordKind, (turn: ImportingTurn) => RecordReader>> = {
  claude: readClaudeRecord,
  codex: readCodexRecord,
  copilot: readCopilotRecord,
  gemini: readGeminiRecord,
  opencode: readOpenCodeRecord,
  qwen: readQwenRecord,
};
