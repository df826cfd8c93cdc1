/** What the doors need to take orders and tell of tasks: known to whoever starts the server. */
import { HeddleError } from "@heddle/protocol";
import type { TaskCheck, TaskSpec } from "@heddle/protocol/tasks";
import type { Sink, Tasks, WebhookDoor } from "@heddle/tasks";
import { folderFor } from "../folders.ts";
import { refuseOpenWalls } from "../open-walls.ts";
import { scopeAllows, type Principal } from "../principals.ts";
import type { HttpCall } from "./route.ts";

export interface TaskDesk {
  /** Where orders become tasks, and which programs elsewhere may send some. */
  readonly door: WebhookDoor;
  /** Of inboxes: an order may be named by its path there. */
  readonly folders: readonly string[];
  readonly sinks: readonly Sink[];
  /** How many tasks this process carries out at a time; 0: none, they are left to others. */
  readonly concurrency: number;
}

/** The calls about tasks as whoever calls may make them: nobody gets further by a task than by a turn. */
export function tasksFor({ context: { desk, cwd }, principal }: HttpCall): Tasks {
  const { tasks, journal } = desk.door;
  /** Goes on with work that somebody else may have ordered without walls. */
  const mayGoOn = async (taskId: string): Promise<void> =>
    refuseOpenWalls(principal, (await journal.tasks.get(taskId))?.spec.sandbox);
  return {
    ...tasks,
    async resume(taskId, budget) {
      await mayGoOn(taskId);
      return tasks.resume(taskId, budget);
    },
    async retry(taskId, reason) {
      await mayGoOn(taskId);
      return tasks.retry(taskId, reason);
    },
    async relieve(taskId, action) {
      await mayGoOn(taskId);
      return tasks.relieve(taskId, action);
    },
    async add(task) {
      refuseOpenWalls(principal, task.spec.sandbox);
      refuseNetwork(principal, task.spec);
      const workspace = await folderFor({ principal, wanted: task.spec.workspace, cwd });
      return tasks.add({ ...task, spec: { ...task.spec, workspace } });
    },
  };
}

function refuseNetwork(principal: Principal | undefined, spec: TaskSpec): void {
  const isOwner = principal !== undefined && scopeAllows(principal.role, "admin");
  if (isOwner || (!spec.network && !spec.checks.some(reachesOut))) return;
  throw new HeddleError("door.forbidden", "only an owner lets a task, or one of its checks, reach the network");
}

function reachesOut(check: TaskCheck): boolean {
  switch (check.kind) {
    case "all":
    case "any":
      return check.of.some(reachesOut);
    case "not":
      return reachesOut(check.of);
    case "command":
    case "tests":
      return check.network;
    case "http":
      return true;
    default:
      return false;
  }
}
