/** `heddle task lint`: what is wrong with task files, before anything runs; with --run, what their checks say as things are. */
import path from "node:path";
import { type CheckResult, counted, EXIT, exitCodeOf, toHeddleError, visibleLine, visibleText } from "@heddle/protocol";
import {
  deliverLine,
  hopProblem,
  lacksDeliver,
  problemLine,
  proposeDeliver,
  runChecks,
  SpecError,
  undeliverable,
  type FoundSpec,
} from "@heddle/tasks";
import { heddleHome, loadConfig, type ConfigFile } from "@heddle/runtime/config";
import { requireAgents } from "@heddle/runtime/settings";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import type { Output } from "../print/output.ts";
import { styleFor } from "../print/style.ts";
import { watchForStop } from "../stop.ts";
import { readTasks } from "./read-tasks.ts";
import { checkLines } from "./task-lines.ts";

interface Linted {
  readonly found: readonly FoundSpec[];
  readonly warnings: readonly string[];
  readonly problems: SpecError["problems"];
}

export async function lintTasks(file: string, args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const linted = await lint(file, context);
  const { found, warnings, problems } = linted;
  const code = problems.length > 0 ? exitCodeOf("task.invalid") : EXIT.ok;
  const runs = args.has("run") && code === EXIT.ok ? await runAll(found, context) : [];
  const proposals: (readonly string[] | undefined)[] = [];
  for (const { spec } of found) proposals.push(lacksDeliver(spec) ? await proposeDeliver(spec) : undefined);
  if (args.has("json")) {
    const tasks = found.map(({ file, spec }, index) => ({
      file,
      spec,
      ...(args.has("run") ? { results: runs[index] } : {}),
      ...(proposals[index] === undefined ? {} : { proposes: { deliver: proposals[index] } }),
    }));
    await out.write(toLine({ isValid: code === EXIT.ok, tasks, warnings, problems }));
    return code;
  }
  for (const problem of problems) await out.write(`${visibleText(problemLine(problem))}\n`);
  for (const warning of warnings) await out.write(`warning: ${visibleText(warning)}\n`);
  for (const [index, one] of found.entries()) await printDeliver(out, one, proposals[index]);
  for (const one of found) await printMakes(out, one);
  if (args.has("run")) await printRuns(out, linted, runs, context.env);
  if (code === EXIT.ok) await out.write(`${counted(found.length, "task")}, nothing wrong\n`);
  return code;
}

/** What a spec without `deliver` cannot promise, and the line that does. */
async function printDeliver(out: Output, { spec }: FoundSpec, proposed: readonly string[] | undefined): Promise<void> {
  if (!lacksDeliver(spec)) return;
  const line = proposed === undefined ? "add deliver: [paths or globs]" : `for example ${deliverLine(proposed)}`;
  await out.write(
    `note: ${visibleLine(spec.name)} does not say what it delivers: whatever the agent leaves is judged with it, and work that rests on a file no check names is put to you instead of being verified; ${visibleLine(line)}\n`,
  );
}

/** What work that its setup installs or builds from needs. */
async function printMakes(out: Output, { spec: { name, setup } }: FoundSpec): Promise<void> {
  if (setup === undefined || setup.makes !== undefined) return;
  await out.write(
    `note: ${visibleLine(name)} does not say what its setup makes of the work: whatever comes out otherwise than on the folder as it was, packages of a new lockfile or a build, is not judged with it, and work that needs it is put to you; for example setup: { run: ..., makes: [node_modules/**] }\n`,
  );
}

async function lint(file: string, context: CommandContext): Promise<Linted> {
  try {
    const { config } = await loadConfig(context.env);
    const { found, warnings } = await readTasks(file, config, context);
    const problems = [...(await agentProblems(found, config, context)), ...(await hopProblems(found, context))];
    if (problems.length > 0) return { found: [], warnings, problems };
    const closed = found.flatMap(({ spec }) => undeliverable(spec).map((why) => `${spec.name}: ${why}`));
    return { found, warnings: [...warnings, ...closed], problems: [] };
  } catch (error) {
    if (error instanceof SpecError) return { found: [], warnings: [], problems: error.problems };
    throw error;
  }
}

async function agentProblems(
  found: readonly FoundSpec[],
  config: ConfigFile,
  { env, cwd }: CommandContext,
): Promise<SpecError["problems"]> {
  const problems: SpecError["problems"][number][] = [];
  for (const { file, spec } of found) {
    const refused = await requireAgents(spec, { file: config, overrides: {} }, env).then(
      () => undefined,
      toHeddleError,
    );
    if (refused === undefined) continue;
    const [key = ""] = refused.code.split(".");
    problems.push({ file: path.relative(cwd, file), line: 1, column: 1, key, message: refused.message });
  }
  return problems;
}

async function hopProblems(found: readonly FoundSpec[], { env, cwd }: CommandContext): Promise<SpecError["problems"]> {
  const problems: SpecError["problems"][number][] = [];
  for (const { file, spec } of found) {
    const problem = await hopProblem(spec, heddleHome(env));
    if (problem === undefined) continue;
    const message = `${spec.name}: ${problem.message}`;
    problems.push({ file: path.relative(cwd, file), line: 1, column: 1, key: "hops", message });
  }
  return problems;
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
async function printRuns(
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
