/** What Codex does and Heddle does not do yet. Each is a defect until it is gone from here. */
import type { Difference } from "../differences.ts";

function gap(difference: Omit<Difference, "isGap">): Difference {
  return { ...difference, isGap: true };
}

export const GAPS: readonly Difference[] = [
  gap({
    in: /^compact$/,
    message: /^(item\/(started|completed) contextCompaction|thread\/tokenUsage\/updated|warning)$/,
    why: "a short conversation is not made smaller when a client asks for it; it is told so",
  }),
];
