/** The tables for queries. Each is a function of the events: written with them, and rebuilt from them. */
import type { Projection } from "./changes.ts";
import { leases } from "./leases.ts";
import { marks } from "./marks.ts";
import { notifications, sinks } from "./notifications.ts";
import { requests } from "./requests.ts";
import { tasks } from "./tasks.ts";
import { threads } from "./threads.ts";
import { queued, turns } from "./turns.ts";
import { usageDays } from "./usage-days.ts";

/** In this order: the ledger looks up the request of an answer before it is closed. */
export const PROJECTIONS: readonly Projection[] = [
  threads,
  turns,
  queued,
  leases,
  tasks,
  notifications,
  sinks,
  usageDays,
  requests,
  marks,
];
