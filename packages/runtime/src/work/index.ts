export { inboxOf } from "./inbox.ts";
export { notifyingOf } from "./notify.ts";
export { openTaskDoor, taskDoorOptionsOf } from "./open-task-door.ts";
export { concurrencyOf, openWorker } from "./open-worker.ts";
export { settingsForTask } from "./open-worker.ts";
