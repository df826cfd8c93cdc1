/** The evidence as the tools of one turn know it. What it needs is loaded with the first call. */
import type { Journal } from "@heddle/journal";
import type { By } from "@heddle/protocol";
import type { EvidencePort } from "@heddle/tools";

export function evidencePort(
  journal: Journal,
  { threadId, turnId, by }: { readonly threadId: string; readonly turnId: string } & By,
): EvidencePort {
  return {
    // What another home said is for the owner to judge.
    search: (query, signal) => journal.evidence.query({ ...query, origin: "local" }, { signal }),
    async note(note, callId) {
      const { noteEvidence } = await import("./notes.ts");
      // The same call after a crash is the same note.
      const noteId = `note_${turnId}_${callId}`.replaceAll(/[^A-Za-z0-9._:-]/g, "-").slice(0, 128);
      return noteEvidence(journal, { threadId, note: { ...note, noteId }, duringTurn: turnId, by });
    },
  };
}
