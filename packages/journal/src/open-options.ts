/** What it takes to open a journal. */
import type { Redactor } from "./redact.ts";

export interface OpenJournalOptions {
  /** Folder of Heddle's own files; made when missing. */
  readonly home: string;
  readonly now?: () => number;
  /** Exact values never to be stored, such as the provider keys of this process. */
  readonly secrets?: readonly string[];
  /** Shared with whoever learns of secrets while the journal is open; it learns `secrets` too. */
  readonly redactor?: Redactor | undefined;
}
