/** Which events belong to tasks and their notifications. Apart from their schemas, which readers of a thread do not need. */
import type { EventBody } from "../events/events.ts";

export type TaskEventBody = Extract<EventBody, { type: `task.${string}` }>;
export type NotificationEventBody = Extract<EventBody, { type: `notification.${string}` }>;

export function isTaskEvent(body: EventBody): body is TaskEventBody {
  return body.type.startsWith("task.");
}

export function isNotificationEvent(body: EventBody): body is NotificationEventBody {
  return body.type.startsWith("notification.");
}

/** It is in no thread's stream. */
export function isOutsideThreads(body: EventBody): body is TaskEventBody | NotificationEventBody {
  return isTaskEvent(body) || isNotificationEvent(body);
}
