/** Rules beyond the schema: keys that belong together, valid patterns and times, paths inside the workspace. */
import { reasonOf } from "@heddle/protocol";
import { statSync } from "node:fs";
import path from "node:path";
import type { TaskCheck, TaskSchedule, TaskSpec } from "@heddle/protocol/tasks";
import { parsePath } from "../checks/document-path.ts";
import { checkSchedule } from "../queue/schedule.ts";
import { formatDuration } from "./durations.ts";
import type { Positions, Table } from "./positions.ts";

export interface RuleOptions {
  readonly minEveryMs: number;
}

/** What `heddle task init` writes; refused, so that no model is paid for it. */
export const PLACEHOLDER = { goal: "(Write here what is to be done, in a few sentences.)" } as const;

type Tell = (at: readonly PropertyKey[], message: string) => void;

export function applyRules(positions: Positions, input: Table, spec: TaskSpec, options: RuleOptions): void {
  const tell: Tell = (at, message) => positions.problemIn(input, at, message);
  if (!isFolder(spec.workspace))
    tell(["workspace"], `there is no folder ${spec.workspace}; make it, or name another workspace`);
  if (spec.goal.trim() === PLACEHOLDER.goal)
    tell(["goal"], "the goal is still the placeholder; replace it with what is to be done");
  if (spec.schedule !== undefined)
    scheduleRules(spec.schedule, options, (at, message) => tell(["schedule", ...at], message));
  spec.checks.forEach((check, index) => checkRules(check, ["checks", index], tell));
  sameNames(spec.checks, tell);
  deliverRules(spec, tell);
  contestRules(spec, tell);
  if (spec.hops !== undefined && spec.envelope === undefined)
    tell(["hops"], "hops begin in an envelope by name; say which, for example envelope: explore");
  spec.protect.forEach((glob, index) => staysInside(glob, ["protect", index], tell));
  if (spec.dependsOn.includes(spec.name))
    tell(["dependsOn"], `"${spec.name}" cannot wait for itself; take it out of depends_on`);
  if (spec.abort && spec.thread === undefined)
    positions.warnIn(input, ["abort"], "abort stops what runs on a thread; without thread it has no effect");
  if (spec.checks.length === 0)
    positions.warnIn(
      input,
      ["name"],
      `"${spec.name}" has no checks: it can be claimed as done, but nothing can verify it`,
    );
}

function deliverRules({ deliver, apply, worktree, checks, setup }: TaskSpec, tell: Tell): void {
  const globs = [
    ...(deliver ?? []).map((glob, index) => ({ glob, at: ["deliver", index] })),
    ...(setup?.makes ?? []).map((glob, index) => ({ glob, at: ["setup", "makes", index] })),
  ];
  for (const { glob, at } of globs) {
    staysInside(glob.replace(/^!/, ""), at, tell);
    if (/^!?(?:\.git|\*\*\/\.git)(?:\/|$)/.test(glob.replace(/^(!?)\.\//, "$1")))
      tell(at, `"${glob}" is git's own folder; what the agent or its code writes there is never part of the work`);
  }
  if (deliver?.every((glob) => glob.startsWith("!")) === true)
    tell(["deliver"], "deliver only takes out; name what the agent is to change first, such as src/**");
  if (apply === "live" && worktree !== undefined)
    tell(["apply"], "apply: live means the folder itself, and worktree means another; leave out one of them");
  if (apply === "never" && worktree !== undefined)
    tell(
      ["apply"],
      "of a worktree nothing comes back with worktree: { merge: none }; write that, or leave out worktree",
    );
  if (setup !== undefined && checks.length === 0)
    tell(["setup"], "setup prepares the clean room of checks, and there are none; add checks, or take it out");
}

/** Keys of contests, and what a task of several contestants cannot have. */
function contestRules(spec: TaskSpec, tell: Tell): void {
  const { agents, pick, order, score, apply } = spec;
  if (agents === undefined) {
    for (const key of ["pick", "order", "score", "keep"] as const)
      if (spec[key] !== undefined)
        tell([key], `${key} is about contestants, and there are none; add agents: [codex, claude]`);
    return;
  }
  if (spec.checks.length === 0) tell(["agents"], "only verified work can be picked; add checks");
  if (spec.thread !== undefined) tell(["thread"], "contestants cannot share a thread; leave out thread or agents");
  if (apply === "live")
    tell(["apply"], "contestants work in trees of their own, of which one is applied; leave out apply: live");
  for (const key of ["order", "score"] as const)
    if (spec[key] !== undefined && pick !== "best") tell([key], `${key} ranks contestants; it needs pick: best`);
  if (order?.includes("score") === true && score === undefined)
    tell(["order"], 'order names score; add the command that prints it: score: "npm run -s score"');
  if (order !== undefined && new Set(order).size < order.length)
    tell(["order"], "order names a measure twice; keep one");
}

function isFolder(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
}

function scheduleRules(schedule: TaskSchedule, { minEveryMs }: RuleOptions, tell: Tell): void {
  const { everyMs, at, timeZone } = schedule;
  const key = (["cron", "everyMs", "at"] as const).filter((name) => schedule[name] !== undefined);
  if (!isTimeZone(timeZone))
    return tell(["timeZone"], `there is no time zone "${timeZone}"; write Europe/Berlin for example`);
  if (everyMs !== undefined && everyMs < minEveryMs)
    tell(
      ["everyMs"],
      `every must be at least ${formatDuration(minEveryMs)}; [tasks] min_interval in config.toml changes that`,
    );
  if (at !== undefined && !/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(at))
    return tell(["at"], 'at is a date with a time: "2026-12-24T18:00:00Z"');
  try {
    checkSchedule(schedule);
  } catch (error) {
    tell(key.length === 1 ? key : [], reasonOf(error));
  }
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function checkRules(check: TaskCheck, at: readonly PropertyKey[], tell: Tell): void {
  const here: Tell = (more, message) => tell([...at, ...more], message);
  if (check.kind === "all" || check.kind === "any")
    check.of.forEach((one, index) => checkRules(one, [...at, "of", index], tell));
  else if (check.kind === "not") checkRules(check.of, [...at, "of"], tell);
  if ("path" in check) staysInside(check.path, ["path"], here);
  if ("cwd" in check) staysInside(check.cwd, ["cwd"], here);
  if ("report" in check && check.report !== undefined) staysInside(check.report, ["report"], here);
  if ("paths" in check) check.paths?.forEach((glob, index) => staysInside(glob, ["paths", index], here));
  if ("only" in check) check.only?.forEach((glob, index) => staysInside(glob, ["only", index], here));
  if (check.kind === "glob-count") {
    staysInside(check.glob, ["glob"], here);
    if (check.max !== undefined && check.max < check.min)
      here(["max"], `max is below min (${check.min}); nothing could pass`);
  }
  if (check.kind === "schema" && typeof check.schema === "string") staysInside(check.schema, ["schema"], here);
  if (check.kind === "matches") isPattern(check.regex, check.flags, ["regex"], here);
  else if ("matches" in check && check.matches !== undefined) isPattern(check.matches, "m", ["matches"], here);
  if (check.kind === "json" || check.kind === "yaml") {
    const given = [check.equals, check.matches, check.exists].filter((value) => value !== undefined);
    if (given.length !== 1) here([], `a ${check.kind} check has exactly one of equals, matches and exists`);
    isValuePath(check.at ?? "", ["at"], here);
  }
  if (
    check.kind === "git" &&
    [check.clean, check.commit, check.branch, check.only].every((value) => value === undefined)
  )
    here([], "a git check demands something: clean, commit, branch or only");
  if (check.kind === "checkboxes" && (check.paths === undefined) === (check.change === undefined))
    here([], "a checkboxes check has either paths or change");
}

function sameNames(checks: readonly TaskCheck[], tell: Tell): void {
  const seen = new Set<string>();
  checks.forEach(({ name }, index) => {
    if (name !== undefined && seen.has(name))
      tell(["checks", index, "name"], `another check is called "${name}" already`);
    if (name !== undefined) seen.add(name);
  });
}

function staysInside(given: string, at: readonly PropertyKey[], tell: Tell): void {
  const isOut = path.isAbsolute(given) || path.normalize(given).split(path.sep).includes("..");
  if (isOut) tell(at, `"${given}" leads out of the workspace; write a path relative to it`);
}

function isValuePath(text: string, at: readonly PropertyKey[], tell: Tell): void {
  try {
    parsePath(text);
  } catch (error) {
    tell(at, reasonOf(error));
  }
}

function isPattern(source: string, flags: string, at: readonly PropertyKey[], tell: Tell): void {
  try {
    new RegExp(source, flags);
  } catch (error) {
    tell(at, `this is not a regular expression: ${reasonOf(error)}`);
  }
}
