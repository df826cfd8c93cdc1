/** Names a notification by what it is of, so that queueing it twice gives the same id; ids sort by position. */
import { createHash } from "node:crypto";

const POSITION_DIGITS = 12;

export function notificationId(of: {
  readonly sink: string;
  readonly event: string;
  readonly position: number;
}): string {
  const hash = createHash("sha256").update(`${of.sink}\n${of.event}`).digest("hex").slice(0, 8);
  return `ntf_${String(of.position).padStart(POSITION_DIGITS, "0")}-${hash}`;
}
