/** `heddle task undo` and `heddle task retry --from-baseline`: back to how the workspace was when the task began. */
import { counted, EXIT, hasOwnTree, visibleLine } from "@heddle/protocol";
import type { Undone } from "@heddle/tasks";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { say } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { onTask } from "./on-task.ts";
import { fileLine } from "./work-lines.ts";

/** `isRetried`: another attempt begins from there. */
export async function undoTask(
  selector: string,
  args: ParsedArgs,
  { env }: CommandContext,
  { isRetried }: { readonly isRetried: boolean },
): Promise<number> {
  using stop = watchForStop(undefined);
  return await onTask(selector, args, env, async ({ tasks, task: { id }, isJson, print }) => {
    const reason = args.value("reason") ?? "begun again from the baseline by the user";
    const undone = await tasks.undo(id, {
      isForced: args.has("force"),
      isDryRun: args.has("dry-run"),
      signal: stop.signal,
      ...(isRetried ? { retry: { reason } } : {}),
    });
    const { task, ...rest } = undone;
    await print({ taskId: id, state: task.state, ...rest }, `${undoLines(undone).join("\n")}\n`);
    if (isJson) return EXIT.ok;
    if (!undone.isDone && undone.later.length > 0)
      say(`heddle task undo ${id} --force takes back what changed later, too`);
    if (isRetried) say("heddle watch, or a running heddle serve, begins the new attempt");
    return EXIT.ok;
  });
}

const MAX_SHOWN = 100;

function undoLines({ task, files, count: all, later, isDone }: Undone): readonly string[] {
  const changedLater = new Set(later);
  const shown = files
    .slice(0, MAX_SHOWN)
    .map((file) => `  ${fileLine(file)}${changedLater.has(file.path) ? ", changed after the agent stopped" : ""}`);
  const more = all > shown.length ? [`  and ${all - shown.length} more`] : [];
  // Of a draft it is what came out of it into the workspace.
  const where = visibleLine(hasOwnTree(task.spec) ? task.spec.workspace : (task.folder ?? task.spec.workspace));
  const what = all === 0 ? "nothing has changed since the task began" : `${counted(all, "file")}:`;
  return [`${isDone ? "put back" : "would be put back"} in ${where}: ${what}`, ...shown, ...more];
}
