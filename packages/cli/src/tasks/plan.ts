/** `heddle task plan`: asks a model for a task file, with checks, for what is asked for in this folder. Nothing is added or run. */
import { EXIT, OWNER } from "@heddle/protocol";
import { proposePlan } from "@heddle/tasks";
import { makeHome } from "@heddle/runtime/config";
import { openServing } from "@heddle/runtime/serving";
import { openWorkspace } from "@heddle/runtime/settings";
import { readConfigOf } from "../config-options.ts";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { say } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { warn } from "./read-tasks.ts";

export async function planTask(rest: readonly string[], args: ParsedArgs, context: CommandContext): Promise<number> {
  const prompt = rest.join(" ").trim();
  if (prompt === "") throw usage('write heddle task plan "what is to be done" > FILE.yaml');
  const { env, cwd } = context;
  using stop = watchForStop(undefined);
  const configuration = await readConfigOf(args, env);
  const home = await makeHome(env);
  const workspace = await openWorkspace(undefined, cwd);
  await using ends = new AsyncDisposableStack();
  const serving = await openServing(ends, { configuration, home, env, log: say });
  const settings = await serving.settings.resolve({ workspace });
  const { plan, text, warnings } = await proposePlan({
    heddle: serving.heddle,
    by: OWNER,
    prompt,
    workspace,
    settings,
    signal: stop.signal,
  });
  warn(warnings);
  await openOutput(process.stdout).write(args.has("json") ? toLine(plan) : text);
  return stop.exitCode ?? EXIT.ok;
}
