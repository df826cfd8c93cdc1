/** The whole of a notification, in the shape that OpenLoom's receivers know, with what they lack added. */
import type { StoredEvent, TaskRecord } from "@heddle/protocol";
import type { Activity } from "./activity.ts";
import type { Told } from "./tell.ts";

export type Payload = Readonly<Record<string, JsonValue>>;
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** Of the shape, not of Heddle: it changes when a receiver would have to. */
const SCHEMA_VERSION = "1.0";

export function payloadOf(
  { name, data }: Told,
  event: Pick<StoredEvent, "at" | "position">,
  task: TaskRecord,
  activity: readonly Activity[],
): Payload {
  return plain({
    schema_version: SCHEMA_VERSION,
    event: name,
    task_id: task.id,
    task_name: task.spec.name,
    timestamp: event.at / 1000,
    timestamp_iso: new Date(event.at).toISOString(),
    store_version: event.position,
    data: {
      status: task.state,
      ...data,
      active_session_id: task.threadId ?? task.spec.thread ?? null,
      recent_activity: activity,
    },
  });
}

/** Exactly what JSON can carry: an absent value is absent. */
function plain(value: object): Payload {
  return JSON.parse(JSON.stringify(value)) as Payload;
}
