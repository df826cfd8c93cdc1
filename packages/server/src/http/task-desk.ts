/** What the doors need to take orders and tell of tasks: known to whoever starts the server. */
import { HeddleError } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { OpenTasks, Sink, Tasks, WebhookDoor } from "@heddle/tasks";
import { folderFor } from "../access/folders.ts";
import { refuseOpenWalls } from "../access/open-walls.ts";
import { scopeAllows, type Principal } from "../access/principals.ts";
import type { HttpCall } from "./route.ts";

export interface TaskDesk {
  readonly tasks: OpenTasks;
  /** Where orders become tasks, and which programs elsewhere may send some. */
  readonly door: Omit<WebhookDoor, "tasks">;
  /** Of inboxes: an order may be named by its path there. */
  readonly folders: readonly string[];
  readonly sinks: readonly Sink[];
  /** How many tasks this process carries out at a time; 0: none, they are left to others. */
  readonly concurrency: number;
}

/**
 * The calls about tasks as whoever calls may make them: nobody gets further by a task than by a turn, nor by a task of
 * somebody else than by one of their own. Every call is written out, so that a new one cannot be let through unseen.
 */
export function tasksFor({ context: { desk, cwd }, principal, by }: HttpCall): Tasks {
  const { journal } = desk.door;
  const tasks = desk.tasks.as(by);
  const specOf = async (taskId: string): Promise<TaskSpec | undefined> => (await journal.tasks.get(taskId))?.spec;
  /** Reads files of its workspace. */
  const mayRead = async (taskId: string): Promise<void> => {
    const spec = await specOf(taskId);
    // An owner reads what was kept of a folder that is gone.
    if (spec !== undefined && !isOwner(principal)) await folderFor({ principal, wanted: spec.workspace, cwd });
  };
  /** Has commands of its spec run, or its workspace changed: whoever may not order it may not do that either. */
  const mayGoOn = async (taskId: string): Promise<void> => {
    const spec = await specOf(taskId);
    if (spec === undefined) return;
    refuseOpenWalls(principal, spec.sandbox);
    refuseNetwork(principal, spec);
    await mayRead(taskId);
  };
  return {
    find: (selector) => tasks.find(selector),
    page: (wish) => tasks.page(wish),
    log: (taskId, range) => tasks.log(taskId, range),
    // Stopping, and a person's word about it, start nothing and touch no file.
    pause: (taskId, reason) => tasks.pause(taskId, reason),
    cancel: (taskId, reason) => tasks.cancel(taskId, reason),
    complete: (taskId, note) => tasks.complete(taskId, note),
    remove: (taskId) => tasks.remove(taskId),
    async diff(taskId, wish) {
      await mayRead(taskId);
      return tasks.diff(taskId, wish);
    },
    async resume(taskId, budget) {
      await mayGoOn(taskId);
      return tasks.resume(taskId, budget);
    },
    async retry(taskId, reason, how) {
      await mayGoOn(taskId);
      return tasks.retry(taskId, reason, how);
    },
    async accept(taskId, note) {
      await mayGoOn(taskId);
      return tasks.accept(taskId, note);
    },
    async verify(taskId, how) {
      await mayGoOn(taskId);
      return tasks.verify(taskId, how);
    },
    async undo(taskId, wish) {
      await mayGoOn(taskId);
      return tasks.undo(taskId, wish);
    },
    async relieve(taskId, action) {
      await mayGoOn(taskId);
      return tasks.relieve(taskId, action);
    },
    async archive(taskId, isArchived) {
      await mayGoOn(taskId);
      return tasks.archive(taskId, isArchived);
    },
    async add(task) {
      refuseOpenWalls(principal, task.spec.sandbox);
      refuseNetwork(principal, task.spec);
      const workspace = await folderFor({ principal, wanted: task.spec.workspace, cwd });
      return tasks.add({ ...task, spec: { ...task.spec, workspace } });
    },
  };
}

function isOwner(principal: Principal | undefined): boolean {
  return principal !== undefined && scopeAllows(principal.role, "admin");
}

function refuseNetwork(principal: Principal | undefined, spec: TaskSpec): void {
  if (isOwner(principal) || !reachesOut(spec)) return;
  throw new HeddleError("door.forbidden", "only an owner can give a task, its setup or its checks network access");
}

/** Anything in a spec that asks for the network, wherever it stands; a value that only looks like it is refused too. */
function reachesOut(part: unknown): boolean {
  if (typeof part !== "object" || part === null) return false;
  if ("network" in part && part.network === true) return true;
  if ("kind" in part && part.kind === "http") return true;
  return Object.values(part).some(reachesOut);
}
