/** `heddle task collect`: removes worktrees of tasks that have ended and what was kept to judge them by, and says why. */
import { EXIT, visibleLine } from "@heddle/protocol";
import { collectRooms, collectWorktrees, parseDuration, type Collected } from "@heddle/tasks";
import { heddleHome } from "@heddle/runtime/config";
import { lookAtTasks } from "@heddle/runtime/task-store";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { openAnswer } from "../print/answer.ts";
import { say } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";

/** A worktree is in the way; what a task was judged by is small beside it, and undoing and judging again need it. */
const WORKTREE_AGE = "1d";
const ROOM_AGE = "7d";

export async function collect(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [worktrees, rooms] = [WORKTREE_AGE, ROOM_AGE].map((age) => msOf(args.value("older-than") ?? age));
  const { isJson, out, print } = openAnswer(args, env);
  using stop = watchForStop(undefined);
  await using store = await lookAtTasks(env, say);
  const common = { home: heddleHome(env), isDryRun: args.has("dry-run"), now: Date.now, signal: stop.signal };
  const found: Collected[] = [];
  if (store !== undefined) {
    const { journal } = store;
    found.push(...(await collectWorktrees({ ...common, journal, olderThanMs: worktrees ?? 0 })));
    found.push(...(await collectRooms({ ...common, journal, olderThanMs: rooms ?? 0 })));
  }
  for (const one of found) {
    const line = `${one.outcome.padEnd(12)}  ${one.taskId}  ${visibleLine(one.path)}  ${visibleLine(one.reason)}\n`;
    await print(one, line);
  }
  if (found.length === 0 && !isJson) await out.write("there are no worktrees of tasks, and nothing is kept of any\n");
  return EXIT.ok;
}

function msOf(age: string): number {
  const ms = parseDuration(age);
  if (ms === undefined) throw usage(`--older-than ${age} is not a duration; write 1d, 12h or 0s`);
  return ms;
}
