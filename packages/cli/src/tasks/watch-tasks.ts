/**
 * `heddle watch` and `heddle task run`: opens the engine as exec and serve do, and a worker that carries out the tasks of
 * this home; shows what happens to them as it is stored. Ending it ends its turns and leaves the tasks to continue later.
 */
import { EXIT, hasEnded, isHeddleError, OWNER, TASK_STATES, visibleLine, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import {
  openLoomSettings,
  openTasks,
  resumeWithMore,
  type FoundSpec,
  type FoundSpecs,
  type Harness,
  type SpecStore,
  type Tasks,
} from "@heddle/tasks";
import { makeHome, type ConfigFile } from "@heddle/runtime/config";
import type { DoorPlan, Doors } from "@heddle/runtime/doors";
import { openServing, type Serving } from "@heddle/runtime/serving";
import { concurrencyOf, openWorker, settingsForTask } from "@heddle/runtime/work";
import { isPutToOwner } from "@heddle/protocol/task-words";
import { readConfigOf } from "../config-options.ts";
import { reportUnstoredEnds, untilAborted } from "../until-end.ts";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { marked, openScreen, say } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { addOrTakeUp, refuseChanged } from "./add.ts";
import { exitCodeOfTask, exitCodeOfTasks, paintState, standing } from "./outcome.ts";
import { readTasks, warn } from "./read-tasks.ts";
import { showTasks } from "./show-tasks.ts";
import { printSettings } from "./print-settings.ts";

/** Turns get their end, tasks their state; then it is over, whatever hangs. */
const STOP_MS = 4_800;

export interface Watching {
  /** Files to add first; undefined: what is queued already. */
  readonly file: string | undefined;
  readonly args: ParsedArgs;
  readonly context: CommandContext;
  /** Ends when none of its tasks will move by itself any more. */
  readonly isOnce: boolean;
  /** Carries out no other task of this home than those of the files. */
  readonly isAlone?: boolean;
  /** Tasks that are ordered together, in place of those of a file, and what is printed of them in the end. */
  readonly batch?: Batch;
  /** Others can look and act while it lasts. */
  readonly ui?: DoorPlan | undefined;
}

export interface Batch {
  read(config: ConfigFile): Promise<FoundSpecs>;
  add(store: SpecStore, found: readonly FoundSpec[]): Promise<readonly TaskRecord[]>;
  print(
    journal: Journal,
    to: { readonly out: Output; readonly style: Style; readonly isStopped: boolean },
  ): Promise<number>;
}

export async function watchTasks(watching: Watching): Promise<number> {
  const { file, args, context, isOnce, isAlone = false, batch, ui } = watching;
  const { env, cwd, version } = context;
  using stop = watchForStop(undefined, ui?.stopMs ?? STOP_MS);
  const configuration = await readConfigOf(args, env);
  const { config, warnings } = configuration;
  const read = (await batch?.read(config)) ?? (file === undefined ? undefined : await readTasks(file, config, context));
  warn(read?.warnings ?? []);
  const home = await makeHome(env);
  await using ends = new AsyncDisposableStack();
  const claimed = await ui?.claim(ends, home);
  const serving = await openServing(ends, { configuration, home, env, sockets: ui?.sockets ?? [], log: say });
  const { heddle, settings } = serving;
  await requireProvider(serving, read?.found ?? [], cwd);
  const concurrency = concurrencyOf(config);
  if (args.has("verbose") || openLoomSettings(env).isVerbose)
    await printSettings({ env, home, config, settings, cwd, concurrency });

  const { journal } = heddle;
  const from = await journal.position();
  // Before anything is added, so that all events of the tasks are shown.
  const choice = Promise.withResolvers<readonly string[]>();
  const only = isAlone ? choice.promise : undefined;
  const worker = await openWorker(ends, { heddle, settings, home, config, env, only, log: say });
  const { harness } = worker;
  const more = { configWarnings: warnings, config };
  const doors = await claimed?.open(ends, { ...serving, ...worker, cwd, version, ...more });
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  if (doors !== undefined) await printDoors(doors, args, out);
  const store = { journal, home };
  const chosen = read && (await (batch?.add(store, read.found) ?? addAll(store, read.found, args)));
  choice.resolve(chosen?.map(({ id }) => id) ?? []);
  const style = styleFor("auto", out.isTerminal, env);
  const showing = { journal, from, chosen, out, style, isJson: args.has("json"), hasItems: args.has("items") };
  // Of a batch a program reads the result.
  const show = batch !== undefined && args.has("json") ? undefined : showTasks(showing);
  const watched = isOnce ? await untilOver(harness, { journal, chosen, stop }) : [];
  if (!isOnce) {
    say(`watching the tasks of ${home}, ${concurrency} at a time; Ctrl-C stops it`);
    await untilAborted(stop.signal);
  }
  // The last turns get their end, and what that means for their tasks is stored and shown.
  await (doors?.endWork() ?? harness[Symbol.asyncDispose]());
  const ended = await Promise.all(watched.map(({ id }) => journal.tasks.get(id)));
  await show?.end();
  const isStopped = stop.exitCode !== undefined;
  const batchCode = await batch?.print(journal, { out, style, isStopped });
  await ends.disposeAsync();
  if (batchCode !== undefined) return reportUnstoredEnds(heddle, stop.exitCode ?? batchCode);
  const exitCode = await printEnd(
    ended.filter((task) => task !== undefined),
    { args, out, style, stop },
  );
  return reportUnstoredEnds(heddle, exitCode);
}

async function printDoors({ addresses, url, tokenFile, how }: Doors, args: ParsedArgs, out: Output): Promise<void> {
  await out.write(args.has("json") ? toLine({ type: "watch.serving", addresses, url, tokenFile }) : how);
}

async function addAll(store: SpecStore, found: readonly FoundSpec[], args: ParsedArgs): Promise<readonly TaskRecord[]> {
  const tasks = openTasks({ journal: store.journal, home: store.home }).as(OWNER);
  const chosen: TaskRecord[] = [];
  if (!args.has("accept-spec")) await refuseChanged(store, found);
  for (const one of found) {
    const { task, isTakenUp } = await addOrTakeUp(tasks, one);
    chosen.push(task);
    if (isTakenUp) await takeUp(tasks, task);
  }
  return chosen;
}

/** Running a file again resumes its task, unless that needs a decision first: work that is under review, or more budget. */
async function takeUp(tasks: Tasks, task: TaskRecord): Promise<void> {
  const of = `${task.id} (${task.spec.name}) was added from this file before and has not ended`;
  if (task.state !== "paused") return say(`${of}; it continues`);
  if (isPutToOwner(task)) return say(`${of}; it stays paused: its work waits for your decision`);
  try {
    await tasks.resume(task.id);
    say(`${of}; it was paused and is resumed`);
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    say(`${of}; it stays paused: ${error.message}`);
  }
}

/** Without a key nothing can be done; a new user needs to know how to get one. */
async function requireProvider({ settings }: Serving, found: readonly FoundSpec[], cwd: string): Promise<void> {
  try {
    if (found.length === 0) await settings.resolve({ workspace: cwd });
    for (const { spec } of found)
      for (const { name: _, ...agent } of spec.agents ?? [{}]) await settingsForTask(settings, { ...spec, ...agent });
  } catch (error) {
    if (isHeddleError(error) && error.code === "auth.missing") {
      process.stderr.write(
        [
          "heddle: no key for the model was found. Do one of these:",
          "heddle:   export OPENAI_API_KEY=...      (or ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)",
          "heddle:   heddle login openai            to store a key",
          "heddle:   heddle config set model_provider ollama     for a model on this machine",
          "heddle:   heddle doctor                  shows what else is missing",
          "",
        ].join("\n"),
      );
    }
    throw error;
  }
}

interface Until {
  readonly journal: Journal;
  readonly chosen: readonly TaskRecord[] | undefined;
  readonly stop: Stop;
}

/** Every task that is watched has come to rest. Times that are still to come are not waited for. */
async function untilOver(harness: Harness, { journal, chosen, stop }: Until): Promise<readonly TaskRecord[]> {
  const watched = new Map<string, TaskRecord>((chosen ?? []).map((task) => [task.id, task]));
  const done = new Set<string>();
  for (;;) {
    const open = chosen === undefined ? await openTasksOf(journal) : await chosenNow(journal, chosen);
    const next = open.filter((task) => !done.has(task.id) && !isForLater(task));
    if (next.length === 0 || stop.signal.aborted) return [...watched.values()];
    for (const task of next) watched.set(task.id, task);
    await harness.drained(
      next.map(({ id }) => id),
      stop.signal,
    );
    for (const { id } of next) done.add(id);
  }
}

/** A schedule begins tasks and never ends; a single time may lie ahead. */
function isForLater({ spec: { schedule }, parentId, nextAt, state }: TaskRecord): boolean {
  if (schedule === undefined || parentId !== undefined || state !== "waiting") return false;
  return schedule.at === undefined || (nextAt ?? 0) > Date.now();
}

const PAGE = 500;
const OPEN_STATES = TASK_STATES.filter(
  (state) => !["verified", "failed", "cancelled", "archived", "paused"].includes(state),
);

async function openTasksOf(journal: Journal, parentId?: string): Promise<readonly TaskRecord[]> {
  const open: TaskRecord[] = [];
  for (let after: string | undefined; ;) {
    const page = await journal.tasks.page({
      states: OPEN_STATES,
      ...(parentId === undefined ? {} : { parentId }),
      ...(after === undefined ? {} : { after }),
      limit: PAGE,
    });
    // What becomes of contestants is their contest's to say.
    open.push(...page.filter((task) => !hasEnded(task) && task.contestant === undefined));
    after = page.at(-1)?.id;
    if (page.length < PAGE) return open;
  }
}

/** Those of the files, and what their schedules have begun. */
async function chosenNow(journal: Journal, chosen: readonly TaskRecord[]): Promise<readonly TaskRecord[]> {
  const found = await Promise.all(
    chosen.map(async ({ id, spec }) => [
      await journal.tasks.get(id),
      ...(spec.schedule === undefined ? [] : await openTasksOf(journal, id)),
    ]),
  );
  return found.flat().filter((task) => task !== undefined);
}

interface Ending {
  readonly args: ParsedArgs;
  readonly out: Output;
  readonly style: Style;
  readonly stop: Stop;
}

async function printEnd(tasks: readonly TaskRecord[], { args, out, style, stop }: Ending): Promise<number> {
  const exitCode = stop.exitCode ?? exitCodeOfTasks(tasks);
  if (args.has("json")) {
    const ended = tasks.map((task) => ({
      id: task.id,
      name: task.spec.name,
      state: task.state,
      standing: standing(task),
    }));
    await out.write(toLine({ type: "watch.ended", exitCode, isStopped: stop.exitCode !== undefined, tasks: ended }));
    return exitCode;
  }
  for (const task of tasks) {
    const { id, spec, state } = task;
    const line = `${paintState(state, style)}  ${visibleLine(spec.name)}  ${id}  ${visibleLine(standing(task))}`;
    await out.write(`${marked(line)}\n`);
  }
  const hint = whatNext(tasks, exitCode, stop);
  if (hint !== undefined) say(hint);
  return exitCode;
}

function whatNext(tasks: readonly TaskRecord[], exitCode: number, stop: Stop): string | undefined {
  if (stop.exitCode !== undefined)
    return "stopped; unfinished tasks continue with the next heddle watch or heddle serve";
  if (tasks.length === 0) return "there are no tasks to run; add one with heddle task add FILE";
  if (exitCode === EXIT.ok) return undefined;
  const paused = tasks.filter(({ state }) => state === "paused");
  const reviewed = paused.find(isPutToOwner);
  if (reviewed !== undefined)
    return `heddle task diff ${reviewed.id} shows the work, heddle task accept ${reviewed.id} takes it, heddle task undo ${reviewed.id} puts it back`;
  const [stopped] = paused;
  const open = stopped ?? tasks.find((task) => exitCodeOfTask(task) !== EXIT.ok);
  if (open === undefined) return undefined;
  const resume = stopped && (resumeWithMore(stopped) ?? `heddle task resume ${stopped.id}`);
  const goesOn = resume === undefined ? "" : `, ${resume} and then heddle watch continue it`;
  return `heddle task log ${open.id} says what happened${goesOn}`;
}
