import { HeddleError } from "@heddle/protocol";
import type { Journal, TailOptions } from "../journal.ts";

/** A cursor of another incarnation may name events that are not there any more, or others. */
export function refuseOtherIncarnation(
  { incarnation }: Pick<Journal, "incarnation">,
  { incarnation: asked = incarnation }: Pick<TailOptions, "incarnation">,
): void {
  if (asked !== incarnation) throw expired();
}

export function expired(): HeddleError {
  return new HeddleError(
    "cursor.expired",
    "events that the cursor has passed were lost since; read the journal from its beginning",
  );
}
