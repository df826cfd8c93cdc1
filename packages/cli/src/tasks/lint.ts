/** `heddle task lint`: what is wrong with task files, before anything runs; with --run, what their checks say as things are. */
import { EXIT, exitCodeOf, visibleLine, visibleText, type CheckResult } from "@heddle/protocol";
import { problemLine, runChecks, SpecError, type FoundSpec } from "@heddle/tasks";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import type { Output } from "../print/output.ts";
import { styleFor } from "../print/style.ts";
import { watchForStop } from "../stop.ts";
import { count } from "./outcome.ts";
import { readTasks } from "./read-tasks.ts";
import { checkLines } from "./task-lines.ts";

interface Linted {
  readonly found: readonly FoundSpec[];
  readonly warnings: readonly string[];
  readonly problems: SpecError["problems"];
}

export async function lintTasks(place: string, args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const linted = await lint(place, context);
  const { found, warnings, problems } = linted;
  const code = problems.length > 0 ? exitCodeOf("task.invalid") : EXIT.ok;
  const runs = args.has("run") && code === EXIT.ok ? await runAll(found, context) : [];
  if (args.has("json")) {
    const tasks = found.map(({ file, spec }, index) => ({
      file,
      spec,
      ...(args.has("run") ? { results: runs[index] } : {}),
    }));
    await out.write(toLine({ isValid: code === EXIT.ok, tasks, warnings, problems }));
    return code;
  }
  for (const problem of problems) await out.write(`${visibleText(problemLine(problem))}\n`);
  for (const warning of warnings) await out.write(`warning: ${visibleText(warning)}\n`);
  if (args.has("run")) await tellRuns(out, linted, runs, context.env);
  if (code === EXIT.ok) await out.write(`${count(found.length, "task")}, nothing wrong\n`);
  return code;
}

async function lint(place: string, context: CommandContext): Promise<Linted> {
  try {
    const { config } = await loadConfig(context.env);
    return { ...(await readTasks(place, config, context)), problems: [] };
  } catch (error) {
    if (error instanceof SpecError) return { found: [], warnings: [], problems: error.problems };
    throw error;
  }
}

async function runAll(
  found: readonly FoundSpec[],
  { env }: CommandContext,
): Promise<readonly (readonly CheckResult[])[]> {
  using stop = watchForStop(undefined);
  const runs: (readonly CheckResult[])[] = [];
  for (const { spec } of found)
    runs.push(await runChecks({ folder: spec.workspace, spec, home: heddleHome(env), signal: stop.signal, env }));
  return runs;
}

/** Nothing has been done yet, so a check that passes now would pass without any work. */
async function tellRuns(
  out: Output,
  { found }: Linted,
  runs: readonly (readonly CheckResult[])[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const style = styleFor("auto", out.isTerminal, env);
  for (const [index, { spec }] of found.entries()) {
    await out.write(`${visibleLine(spec.name)}\n`);
    for (const result of runs[index] ?? []) await out.write(`${checkLines(result, style).join("\n")}\n`);
    const vacuous = (runs[index] ?? [])
      .filter(({ outcome }) => outcome === "passed")
      .map(({ name }) => visibleLine(name));
    if (vacuous.length > 0) await out.write(`  vacuous, passing before any work is done: ${vacuous.join(", ")}\n`);
  }
}
