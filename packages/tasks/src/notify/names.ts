/** The names of notifications. Those of OpenLoom keep their meaning. */
import { HeddleError } from "@heddle/protocol";

export const NOTIFICATION_NAMES = [
  "TASK_CREATED",
  "TASK_STARTED",
  "TASK_UPDATED",
  "TASK_COMPLETED",
  "TASK_FAILED",
  "LOG_LINE",
  "SESSION_STALE_BUSY",
  "TASK_CLAIMED",
  "TASK_VERIFIED",
  "VERIFY_FAILED",
  "TASK_STALLED",
  "PERMISSION_WAITING",
  "BUDGET_WARNING",
  "BUDGET_PAUSED",
] as const;
export type NotificationName = (typeof NOTIFICATION_NAMES)[number];

/** What the user must act on, or waits for. */
export const FOR_PEOPLE: readonly NotificationName[] = [
  "TASK_COMPLETED",
  "TASK_FAILED",
  "TASK_STALLED",
  "PERMISSION_WAITING",
  "BUDGET_PAUSED",
];

/** Names or `*`, in a list or in one text separated by commas, spaces or line ends. */
export function readNames(given: string | readonly string[]): ReadonlySet<NotificationName> {
  const words = splitNames(given);
  if (words.includes("*")) return new Set(NOTIFICATION_NAMES);
  return new Set(words.map(toName));
}

/** Commas, spaces and line ends all separate. */
export function splitNames(given: string | readonly string[]): readonly string[] {
  const texts = typeof given === "string" ? [given] : given;
  return texts.flatMap((text) => text.split(/[\s,]+/)).filter((word) => word !== "");
}

function toName(word: string): NotificationName {
  const name = NOTIFICATION_NAMES.find((known) => known === word.toUpperCase());
  if (name !== undefined) return name;
  throw new HeddleError(
    "config.invalid",
    `"${word}" is not a notification; write * for all of them, or some of ${NOTIFICATION_NAMES.join(", ")}`,
  );
}
