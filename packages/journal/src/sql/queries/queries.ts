import type { Journal } from "../../journal.ts";
import type { Ask } from "../ask.ts";
import type { Dialect } from "../dialect.ts";
import { blobQueries } from "./blobs.ts";
import { lazyEvidence } from "./lazy-evidence.ts";
import { markQueries } from "./marks.ts";
import { messageQueries } from "./messages.ts";
import { notificationQueries } from "./notifications.ts";
import { taskQueries } from "./tasks.ts";
import { threadQueries } from "./threads.ts";
import { usageQueries } from "./usage.ts";

export type Queries = Pick<
  Journal,
  "threads" | "marks" | "messages" | "tasks" | "notifications" | "usage" | "evidence" | "blobs"
>;

export function sqlQueries(ask: Ask, dialect: Dialect, journal: Pick<Journal, "tail" | "position">): Queries {
  return {
    threads: threadQueries(ask, dialect),
    marks: markQueries(ask),
    messages: messageQueries(ask),
    tasks: taskQueries(ask, dialect),
    notifications: notificationQueries(ask),
    usage: usageQueries(ask, dialect),
    evidence: lazyEvidence({
      ask,
      dialect,
      tail: (asked) => journal.tail(asked),
      position: () => journal.position(),
    }),
    blobs: blobQueries(ask, dialect),
  };
}
