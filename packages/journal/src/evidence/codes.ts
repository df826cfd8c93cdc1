/** What is wrong with the record itself, as findings of levels 1 and 2. */
import type { Damage, MissingEvidence, Notice, VerifyReport } from "../journal.ts";
import { finding, type Code, type Finding } from "../replay/findings.ts";

export function recordFindings({
  damage,
  missing,
  notices,
}: Pick<VerifyReport, "damage" | "missing" | "notices">): readonly Finding[] {
  return [
    ...damage.map((found) => finding(codeOf(found), found.message, found)),
    ...missing.map((gone) => finding(MISSING[gone.kind], gone.message, gone)),
    ...notices.flatMap(({ kind, message }) => (PURGED.has(kind) ? [finding("body_purged", message)] : [])),
  ];
}

const MISSING: Readonly<Record<MissingEvidence["kind"], Code>> = {
  witness: "witness_missing",
  checkpoint: "checkpoint_missing",
  key: "key_missing",
};

const PURGED: ReadonlySet<Notice["kind"]> = new Set(["bodies-purged"]);

function codeOf({ kind, by }: Pick<Damage, "kind" | "by">): Code {
  switch (kind) {
    case "version-gap":
      return "gap";
    case "chain-broken":
      return "broken_link";
    case "event-altered":
      return by === "witness" ? "head_mismatch" : "entry_altered";
    case "body-altered":
      return "body_altered";
    case "file-corrupt":
      return "file_corrupt";
    case "tail-lost":
      return by === "checkpoint" ? "truncated_before_checkpoint" : "head_mismatch";
    case "checkpoint-mismatch":
      return "rewritten_before_checkpoint";
    case "checkpoint-forged":
      return "checkpoint_forged";
  }
}
