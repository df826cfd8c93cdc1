/** One task: how it stands, and what happened to it. */
import {
  type Author,
  budgetOf,
  counted,
  EXIT,
  hasEnded,
  isTaskEvent,
  isUser,
  principalName,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
  visibleLine,
} from "@heddle/protocol";
import { allEvents } from "@heddle/runtime/record";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { isQuoted, marked, quoted } from "../print/screen.ts";
import { duration, localTime, money, zonedTime, type Style } from "../print/style.ts";
import { watchForStop } from "../stop.ts";
import { contestRows } from "@heddle/tasks";
import { rowLines } from "./contest-lines.ts";
import { onTask } from "./on-task.ts";
import { paintState, standing } from "./outcome.ts";
import { checkLines, ROOMS, taskLines } from "./task-lines.ts";
import { listed, reviewLines, wayOnLines, workLines } from "./work-lines.ts";

export async function showTask(selector: string, args: ParsedArgs, { env }: CommandContext): Promise<number> {
  return onTask(selector, args, env, async ({ journal, tasks, task, style, print }) => {
    const [created] = await tasks.log(task.id, { limit: 1 });
    const by = created?.author;
    const rows = task.contest === undefined ? [] : await contestRows(journal, task);
    const contest = rows.length === 0 ? [] : ["contest", ...rowLines(rows, style)];
    await print({ ...task, by }, `${[...taskPage(task, by, style), ...contest].join("\n")}\n`);
    return EXIT.ok;
  });
}

function taskPage(task: TaskRecord, by: Author | undefined, style: Style): readonly string[] {
  const { spec, spent, nextAt = 0 } = task;
  const budget = budgetOf(task);
  const isUnknown = spent.isCostPartial && spent.costUsd === 0;
  const known = isUnknown ? money(undefined) : `${money(spent.costUsd)}${spent.isCostPartial ? " or more" : ""}`;
  const cost = `${known}${budget.costUsd === undefined ? "" : ` of ${money(budget.costUsd)}`}`;
  const line = (name: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${name.padEnd(10)} ${value}`.trimEnd()];
  return [
    marked(`${task.id}  ${style.bold(visibleLine(spec.name))}`),
    ...line(marked("state"), `${paintState(task.state, style)}  ${visibleLine(standing(task))}`),
    ...line("ordered by", by === undefined ? undefined : visibleLine(by)),
    ...line("workspace", visibleLine(spec.workspace)),
    ...line(
      "folder",
      task.folder === undefined || task.folder === spec.workspace ? undefined : visibleLine(task.folder),
    ),
    ...line("checking", checking(task)),
    ...line("hops", hops(task)),
    ...line("delivers", spec.deliver === undefined ? undefined : spec.deliver.map(visibleLine).join(", ")),
    ...line("accepted", task.deliver === undefined ? undefined : listed(task.deliver.map(visibleLine))),
    ...line(
      "undone",
      task.undone === undefined
        ? undefined
        : `${zonedTime(task.undone.at)}, ${counted(task.undone.files, "file")} put back`,
    ),
    ...line(
      "contest",
      task.contestant === undefined ? undefined : `contestant ${task.contestant} of ${task.parentId ?? ""}`,
    ),
    ...line("thread", task.threadId),
    // The line with the state says when a waiting task goes on.
    ...line("next", task.state === "waiting" || nextAt <= Date.now() ? undefined : zonedTime(nextAt)),
    ...line("attempt", task.attempt === 0 ? undefined : `${task.attempt}, turn ${task.round}`),
    ...line(
      "used",
      `${duration(spent.timeMs)} of ${duration(budget.timeMs)}, ${spent.turns} of ${counted(budget.turns, "turn")}, ${spent.tokens} of ${budget.tokens} tokens, ${cost}`,
    ),
    ...line("nudges", `${spent.nudges} of ${spec.maxNudges} (turns the harness started by itself)`),
    ...line("waits for", spec.dependsOn.length === 0 ? undefined : spec.dependsOn.map(visibleLine).join(", ")),
    ...line("labels", spec.labels.length === 0 ? undefined : spec.labels.map(visibleLine).join(", ")),
    ...line("claim", task.claim === undefined ? undefined : visibleLine(task.claim.summary)),
    ...(spec.steps.length === 0 ? [] : ["steps"]),
    ...spec.steps.map(
      ({ title }, index) =>
        `  ${task.stepsDone.includes(index + 1) ? "reported as done" : "open           "} ${index + 1}. ${visibleLine(title)}`,
    ),
    ...(task.lastCheck === undefined
      ? line("checks", spec.checks.length === 0 ? "none: nothing can verify it" : `${spec.checks.length}, not run yet`)
      : [`checks     run by the harness at ${zonedTime(task.lastCheck.at)}`]),
    ...(task.lastCheck?.results ?? []).flatMap((result) => checkLines(result, style, task.lastCheck?.work)),
    ...workLines(task.lastCheck?.work, style),
    ...(task.lastCheck?.violations ?? []).map(({ message }) => style.red(`  VIOLATION ${visibleLine(message)}`)),
    ...(task.lastCheck?.round === task.round ? reviewLines(task.lastCheck.review, style) : []),
    ...wayOnLines(task),
    "goal",
    ...quoted(spec.goal.trimEnd()),
  ];
}

/** The envelopes it goes through, and what keeps it from the next one. */
function hops({ hops: done, spec }: TaskRecord): string | undefined {
  if (spec.hops === undefined) return undefined;
  const names = [spec.envelope ?? "", ...spec.hops.map(({ to }) => to)];
  const at = done?.taken ?? 0;
  const path = names.map((name, index) => visibleLine(index === at ? `[${name}]` : name)).join(" → ");
  return done?.refused === undefined ? path : `${path}, not further yet: ${visibleLine(done.refused)}`;
}

/** The check that runs, and since when. */
function checking({ checking: now }: TaskRecord): string | undefined {
  if (now === undefined) return undefined;
  return `${visibleLine(now.name)} ${ROOMS[now.room]}, for ${duration(Math.max(0, Date.now() - now.since))}`;
}

export async function logTask(selector: string, args: ParsedArgs, { env }: CommandContext): Promise<number> {
  using stop = watchForStop(undefined);
  return await onTask(selector, args, env, async ({ journal, task: { id }, out, style, print }) => {
    let seen = 0;
    const show = async (event: StoredEvent): Promise<void> => {
      const { body, version } = event;
      if (isTaskEvent(body)) await print(event, `${logLines({ ...event, body }, style).join("\n")}\n`);
      seen = version;
    };
    for await (const event of allEvents(journal, id)) await show(event);
    const isOver = async (): Promise<boolean> => {
      const task = await journal.tasks.get(id);
      return out.isClosed || task === undefined || (hasEnded(task) && seen >= task.version);
    };
    if (!args.has("follow") || (await isOver())) return EXIT.ok;
    for await (const event of journal.tail({ stream: id, after: seen, signal: stop.signal })) {
      await show(event);
      if (await isOver()) break;
    }
    return stop.exitCode ?? EXIT.ok;
  });
}

function logLines(event: StoredEvent<TaskEventBody>, style: Style): readonly string[] {
  const when = localTime(event.at, "second");
  const [first = "", ...rest] = taskLines(event, style);
  const own = (line: string): string => (isQuoted(line) ? line : `${" ".repeat(21)}${line}`);
  const who = isUser(event.author) ? style.dim(`  by ${visibleLine(principalName(event.author))}`) : "";
  return [marked(`${style.dim(when)}  ${first}${who}`), ...rest.map(own)];
}
