/** Which events belong to tasks, their notifications, and workers. Apart from their schemas, which readers of a thread do not need. */
import type { EventBody } from "../events/events.ts";

export type TaskEventBody = Extract<EventBody, { type: `task.${string}` }>;
export type NotificationEventBody = Extract<EventBody, { type: `notification.${string}` }>;
export type WorkerEventBody = Extract<EventBody, { type: `worker.${string}` }>;

export function isTaskEvent(body: EventBody): body is TaskEventBody {
  return body.type.startsWith("task.");
}

export function isNotificationEvent(body: EventBody): body is NotificationEventBody {
  return body.type.startsWith("notification.");
}

export function isWorkerEvent(body: EventBody): body is WorkerEventBody {
  return body.type.startsWith("worker.");
}

/** It is in no thread's stream. */
export function isOutsideThreads(body: EventBody): body is TaskEventBody | NotificationEventBody | WorkerEventBody {
  return isTaskEvent(body) || isNotificationEvent(body) || isWorkerEvent(body);
}
