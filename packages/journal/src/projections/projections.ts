/** The tables for queries. Each is a function of the events: written with them, and rebuilt from them. */
import type { EventBody } from "@heddle/protocol";
import type { Projection } from "./changes.ts";
import { evidence, evidenceParts } from "./evidence.ts";
import { leases } from "./leases.ts";
import { marks } from "./marks.ts";
import { messages } from "./messages.ts";
import { notifications, sinks } from "./notifications.ts";
import { openApprovals, openItems } from "./open-items.ts";
import { requests } from "./requests.ts";
import { tasks } from "./tasks.ts";
import { threadEnvelopes } from "./thread-envelopes.ts";
import { threads } from "./threads.ts";
import { queued, turns } from "./turns.ts";
import { usageDays } from "./usage-days.ts";

/**
 * In this order: a turn takes over what its thread has used with it, and the ledger looks up the request of an answer
 * before it is closed.
 */
export const PROJECTIONS: readonly Projection[] = [
  threads,
  turns,
  queued,
  threadEnvelopes,
  leases,
  tasks,
  notifications,
  sinks,
  usageDays,
  requests,
  openItems,
  openApprovals,
  marks,
  messages,
  evidence,
  ...evidenceParts,
];

const LATER = PROJECTIONS.flatMap(({ later }) => (later === undefined ? [] : [later]));

/** Before such events are applied. */
export async function loadFor(bodies: readonly EventBody[]): Promise<void> {
  const missing = LATER.filter((one) => bodies.some((body) => one.isMissing(body)));
  if (missing.length > 0) await Promise.all(missing.map((one) => one.load()));
}

/** Before any events are applied. */
export async function loadProjections(): Promise<void> {
  await Promise.all(LATER.map((one) => one.load()));
}
