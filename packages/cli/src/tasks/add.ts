/** Adds tasks to the queue. They are durable when they are printed; any worker of this home runs them. */
import { createHash } from "node:crypto";
import { canonical, EXIT, hasEnded, isHeddleError, visibleLine, type TaskRecord } from "@heddle/protocol";
import type { TaskSource } from "@heddle/protocol/tasks";
import { refuseChangedSpec, type FoundSpec, type SpecStore, type Tasks } from "@heddle/tasks";
import { heddleHome, loadConfig } from "@heddle/runtime/config";
import { requireAgents } from "@heddle/runtime/settings";
import { openTaskStore } from "@heddle/runtime/task-store";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { say } from "../print/screen.ts";
import { readTasks, warn } from "./read-tasks.ts";

export async function addTasks(file: string, args: ParsedArgs, context: CommandContext): Promise<number> {
  const { config } = await loadConfig(context.env);
  const { found, warnings } = await readTasks(file, config, context);
  warn(warnings);
  const { isJson, print } = openAnswer(args, context.env);
  // All of them or none.
  for (const { spec } of found) await requireAgents(spec, { file: config, overrides: {} }, context.env);
  await using store = await openTaskStore(context.env, say);
  if (!args.has("accept-spec")) await refuseChanged({ journal: store.journal, home: heddleHome(context.env) }, found);
  for (const one of found) {
    const task = await store.tasks.add({ spec: one.spec, source: sourceOf(one) });
    await print(task, `${task.id}  ${task.state}  ${visibleLine(task.spec.name)}\n`);
  }
  if (!isJson) say(RUN_BY);
  return EXIT.ok;
}

export const RUN_BY = "heddle watch, or a running heddle serve, carries out what is queued";

function sourceOf({ file, sha256 }: FoundSpec): TaskSource {
  return { kind: "cli", ref: file, ...(sha256 === undefined ? {} : { sha256 }) };
}

/** A file as an agent left it is not what the user asked for. Called before any of them is added. */
export async function refuseChanged(store: SpecStore, found: readonly FoundSpec[]): Promise<void> {
  const help = "run it with --accept-spec";
  for (const { file, spec, sha256 } of found)
    if (sha256 !== undefined) await refuseChangedSpec(store, { file, sha256, workspace: spec.workspace, help });
}

export interface Added {
  readonly task: TaskRecord;
  /** It was added before and continues. */
  readonly isTakenUp: boolean;
}

/**
 * The task of this very file and content that has not ended, or a new one. The key counts those that have ended, so that
 * two who watch the same file at once have one task.
 */
export async function addOrTakeUp(tasks: Tasks, found: FoundSpec): Promise<Added> {
  const { file, spec } = found;
  const earlier = await sameTasks(tasks, { file, spec });
  const open = earlier.find((task) => !hasEnded(task));
  if (open !== undefined) return { task: open, isTakenUp: true };
  const hash = createHash("sha256").update(canonical(spec)).digest("hex");
  for (let number = earlier.length; ; number += 1) {
    const added = await addAs(tasks, found, `watch:${file}:${hash}:${number}`);
    // One that has ended is an earlier run's: what is said of this run is what this run did.
    if (added !== undefined && !hasEnded(added)) return { task: added, isTakenUp: false };
  }
}

/** undefined: the number was that of a task which is deleted. */
async function addAs(tasks: Tasks, found: FoundSpec, key: string): Promise<TaskRecord | undefined> {
  try {
    return await tasks.add({ spec: found.spec, source: sourceOf(found), key });
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.id-conflict") return undefined;
    throw error;
  }
}

const PAGE = 200;

async function sameTasks(tasks: Tasks, { file, spec }: FoundSpec): Promise<readonly TaskRecord[]> {
  const wanted = canonical(spec);
  const same: TaskRecord[] = [];
  for (let after: string | undefined; ;) {
    const page = await tasks.page({ text: spec.name, ...(after === undefined ? {} : { after }), limit: PAGE });
    same.push(
      ...page.filter(
        (task) => task.source.ref === file && task.parentId === undefined && canonical(task.spec) === wanted,
      ),
    );
    after = page.at(-1)?.id;
    if (page.length < PAGE) return same;
  }
}
