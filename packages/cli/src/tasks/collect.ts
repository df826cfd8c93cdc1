/** `heddle task collect`: removes worktrees of tasks that have ended, and says of each why it goes or stays. */
import { EXIT, visibleLine } from "@heddle/protocol";
import { collectWorktrees, parseDuration } from "@heddle/tasks";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { heddleHome } from "../config/read-config.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { lookAtTasks } from "./store.ts";

const DEFAULT_AGE = "1d";

export async function collect(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const age = args.value("older-than") ?? DEFAULT_AGE;
  const olderThanMs = parseDuration(age);
  if (olderThanMs === undefined) throw usage(`--older-than ${age} is no length of time; write 1d, 12h or 0s`);
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  using stop = watchForStop(undefined);
  await using store = await lookAtTasks(env);
  const found =
    store === undefined
      ? []
      : await collectWorktrees({
          journal: store.journal,
          home: heddleHome(env),
          olderThanMs,
          isDryRun: args.has("dry-run"),
          now: Date.now,
          signal: stop.signal,
        });
  for (const one of found) {
    const line = `${one.outcome.padEnd(12)}  ${one.taskId}  ${visibleLine(one.path)}  ${visibleLine(one.reason)}\n`;
    await out.write(args.has("json") ? toLine(one) : line);
  }
  if (found.length === 0 && !args.has("json")) await out.write("there are no worktrees of tasks\n");
  return EXIT.ok;
}
