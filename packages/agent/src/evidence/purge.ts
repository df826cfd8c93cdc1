/** Deleting what was said: a thread as a whole, what was imported, or a note beside any thread. Who, when and the hashes stay. */
import { isImport } from "@heddle/journal/imports";
import { HeddleError, type By } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import type { Heddle } from "../heddle.ts";
import { purgeNote } from "./notes.ts";

export interface Purged {
  readonly kind: "thread" | "import" | "note";
  readonly id: string;
}

const ENTRY = "evt_";

/** `id`: of a thread, of an import (`import_…`), or of the entry of a note that is in no thread. */
export async function purgeEvidence(
  heddle: Pick<Heddle, "journal" | "as">,
  { id, by }: { readonly id: string } & By,
): Promise<Purged> {
  const { journal } = heddle;
  if (isImport(id)) await purgeImport(journal, { id, by });
  else if (id.startsWith(ENTRY)) await purgeNote(journal, { id, by });
  else await heddle.as(by).deleteThread({ threadId: id });
  return { kind: isImport(id) ? "import" : id.startsWith(ENTRY) ? "note" : "thread", id };
}

export async function purgeImport(journal: Journal, { id, by }: { readonly id: string } & By): Promise<void> {
  if ((await journal.version(id)) === 0 || (await journal.threads.isDeleted(id)))
    throw new HeddleError("evidence.not-found", `nothing is imported as ${id}`, { details: { id } });
  await journal.purge({ stream: id, author: by, reason: "deleted" });
}
