/** What the doors need for orders and tasks, given by the program that starts the server. */
import { HeddleError } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { OpenTasks, Sink, Tasks, WebhookDoor } from "@heddle/tasks";
import { folderFor } from "../access/folders.ts";
import { refuseFullAccess } from "../access/full-access.ts";
import { scopeAllows, type Principal } from "../access/principals.ts";
import type { DoorCall } from "./route.ts";

export interface TaskDoorOptions {
  readonly tasks: OpenTasks;
  /** How orders become tasks, and the webhooks that may send some. */
  readonly door: Omit<WebhookDoor, "tasks">;
  /** Inboxes: an order may be named by its path there. */
  readonly folders: readonly string[];
  readonly sinks: readonly Sink[];
  /** Where users reach the dashboard from elsewhere. */
  readonly publicUrl?: string | undefined;
  /** How many tasks this process runs at a time; 0: none. */
  readonly concurrency: number;
}

/**
 * The calls about tasks that a caller may make: a task gives nobody more rights than a turn, nor does a task that another
 * user ordered. Every call is written out, so that a new one is not allowed by accident.
 */
export function tasksFor({ context: { taskDoor, cwd }, principal, by }: DoorCall): Tasks {
  const { journal } = taskDoor.door;
  const tasks = taskDoor.tasks.as(by);
  const specOf = async (taskId: string): Promise<TaskSpec | undefined> => (await journal.tasks.get(taskId))?.spec;
  /** Reads files of its workspace. */
  const mayRead = async (taskId: string): Promise<void> => {
    const spec = await specOf(taskId);
    // An owner also reads what was kept of a folder that was removed.
    if (spec !== undefined && !isOwner(principal)) await folderFor({ principal, wanted: spec.workspace, cwd });
  };
  /** Runs commands of its spec, or changes its workspace: only for callers who may order it. */
  const mayContinue = async (taskId: string): Promise<void> => {
    const spec = await specOf(taskId);
    if (spec === undefined) return;
    refuseFullAccess(principal, spec.sandbox);
    refuseNetwork(principal, spec);
    await mayRead(taskId);
  };
  return {
    find: (...args) => tasks.find(...args),
    page: (...args) => tasks.page(...args),
    log: (...args) => tasks.log(...args),
    // These start nothing and touch no file.
    pause: (...args) => tasks.pause(...args),
    cancel: (...args) => tasks.cancel(...args),
    complete: (...args) => tasks.complete(...args),
    remove: (...args) => tasks.remove(...args),
    edit: after(mayContinue, (...args) => tasks.edit(...args)),
    merge: after(mayContinue, (...args) => tasks.merge(...args)),
    diff: after(mayRead, (...args) => tasks.diff(...args)),
    resume: after(mayContinue, (...args) => tasks.resume(...args)),
    retry: after(mayContinue, (...args) => tasks.retry(...args)),
    accept: after(mayContinue, (...args) => tasks.accept(...args)),
    verify: after(mayContinue, (...args) => tasks.verify(...args)),
    undo: after(mayContinue, (...args) => tasks.undo(...args)),
    relieve: after(mayContinue, (...args) => tasks.relieve(...args)),
    archive: after(mayContinue, (...args) => tasks.archive(...args)),
    async add(task) {
      return tasks.add({ ...task, spec: await allowedSpec(task.spec, { principal, cwd }) });
    },
  };
}

/** The spec, with its folder, of a task that the caller may order. */
export async function allowedSpec(
  spec: TaskSpec,
  { principal, cwd }: { readonly principal: Principal | undefined; readonly cwd: string },
): Promise<TaskSpec> {
  refuseFullAccess(principal, spec.sandbox);
  refuseNetwork(principal, spec);
  return { ...spec, workspace: await folderFor({ principal, wanted: spec.workspace, cwd }) };
}

/** The call, once the caller is known to be allowed it. */
function after<Rest extends unknown[], Result>(
  check: (taskId: string) => Promise<void>,
  call: (taskId: string, ...rest: Rest) => Promise<Result>,
): (taskId: string, ...rest: Rest) => Promise<Result> {
  return async (taskId, ...rest) => {
    await check(taskId);
    return call(taskId, ...rest);
  };
}

function isOwner(principal: Principal | undefined): boolean {
  return principal !== undefined && scopeAllows(principal.role, "admin");
}

function refuseNetwork(principal: Principal | undefined, spec: TaskSpec): void {
  if (isOwner(principal) || !reachesOut(spec)) return;
  throw new HeddleError("door.forbidden", "only an owner can give a task, its setup or its checks network access");
}

/** Anything in a spec that asks for network access, at any depth; a value that only looks like it counts too. */
function reachesOut(part: unknown): boolean {
  if (typeof part !== "object" || part === null) return false;
  if ("network" in part && (part.network === true || Array.isArray(part.network))) return true;
  if ("kind" in part && part.kind === "http") return true;
  return Object.values(part).some(reachesOut);
}
