/** Keys and variables of OpenLoom: each is translated, or named in a warning with what to use instead. */
import { defined } from "@heddle/protocol";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { formatDuration, parseDuration } from "./durations.ts";
import { isTable, type Positions, type Table } from "./positions.ts";

const RENAMED: Readonly<Record<string, string>> = {
  title: "name",
  cwd: "workspace",
  global_acceptance: "acceptance",
  session: "thread",
  session_id: "thread",
  sessionId: "thread",
  abort_session: "abort",
};

const INTERVALS = ["check_interval", "check_interval_minutes", "check_interval_seconds"] as const;
const OWN = [
  "mode",
  "agent",
  "initial_prompt",
  "auto_accept_permissions",
  "max_tokens",
  "max_runtime_minutes",
  "step_acceptance",
];
export const OPENLOOM_KEYS: readonly string[] = [...Object.keys(RENAMED), ...INTERVALS, ...OWN];
/** The interval of a loop whose file names none. */
const LOOP_MS = 300_000;

/** Our name for a key of OpenLoom. */
export function ownKey(word: string): string {
  if (word === "initial_prompt") return "goal";
  return (Object.hasOwn(RENAMED, word) ? RENAMED[word] : undefined) ?? word;
}

export function withoutOpenLoom(positions: Positions, table: Table): Table {
  const kept: (readonly [string, unknown, string])[] = [];
  for (const word of Object.keys(table)) {
    const name = Object.hasOwn(RENAMED, word) ? RENAMED[word] : undefined;
    if (name !== undefined && name in table)
      positions.problem(table, word, `"${word}" means the same as "${name}"; keep ${name}`);
    else if (name !== undefined || !(OWN.includes(word) || isInterval(word)))
      kept.push([name ?? word, table[word], word]);
  }
  const budget = budgetOf(positions, table);
  const rest = positions.table(table, [
    ...kept.filter(([name]) => name !== "steps" && (name !== "budget" || budget === undefined)),
    ...entry("steps", stepsOf(positions, table), "steps" in table ? "steps" : "step_acceptance"),
    ...entry("budget", budget, "max_tokens" in table ? "max_tokens" : "max_runtime_minutes"),
    ...entry("goal", "goal" in table ? undefined : table["initial_prompt"], "initial_prompt"),
    ...entry("approval", approvalOf(positions, table), "auto_accept_permissions"),
    ...entry("schedule", loopOf(positions, table), "mode"),
  ]);
  tellRest(positions, table);
  return rest;
}

function entry(name: string, value: unknown, from: string): readonly (readonly [string, unknown, string])[] {
  return value === undefined ? [] : [[name, value, from]];
}

function isInterval(word: string): boolean {
  return INTERVALS.some((interval) => interval === word);
}

/** `step_acceptance` has one list for each step, in order. */
function stepsOf(positions: Positions, table: Table): unknown {
  const steps: unknown = table["steps"];
  if (!Array.isArray(steps)) return steps;
  const list: readonly unknown[] = steps;
  const named = list.map((step) =>
    isTable(step) && "name" in step && !("title" in step)
      ? positions.table(
          step,
          Object.entries(step).map(([key, value]) => [key === "name" ? "title" : key, value, key]),
        )
      : step,
  );
  const acceptance: unknown = table["step_acceptance"];
  if (acceptance === undefined) return positions.list(list, named);
  if (!Array.isArray(acceptance) || acceptance.length !== list.length) {
    const count = Array.isArray(acceptance) ? acceptance.length : 0;
    positions.problem(
      table,
      "step_acceptance",
      `step_acceptance has ${count} lists for ${list.length} steps; write the acceptance into each step: {title, acceptance}`,
    );
    return positions.list(list, named);
  }
  const lists: readonly unknown[] = acceptance;
  const joined = named.map((step, index) =>
    typeof step === "string" ? positions.around({ title: step, acceptance: lists[index] }, list, index) : step,
  );
  return positions.list(list, joined);
}

function budgetOf(positions: Positions, table: Table): Table | undefined {
  const { max_tokens: tokens, max_runtime_minutes: minutes, budget } = table;
  if (tokens === undefined && minutes === undefined) return undefined;
  const given = isTable(budget) ? budget : {};
  const time = typeof minutes === "number" && minutes > 0 ? minutes * 60_000 : undefined;
  if (minutes !== undefined && time === undefined)
    positions.problem(
      table,
      "max_runtime_minutes",
      "max_runtime_minutes is a number above 0; or write budget: {time: 2h}",
    );
  return positions.joined(
    positions.table(table, [...entry("tokens", tokens, "max_tokens"), ...entry("timeMs", time, "max_runtime_minutes")]),
    given,
  );
}

function approvalOf(positions: Positions, table: Table): string | undefined {
  const { auto_accept_permissions: auto } = table;
  if (auto === undefined) return undefined;
  if (typeof auto === "boolean") return auto ? "never" : "on-request";
  positions.problem(table, "auto_accept_permissions", "auto_accept_permissions is true or false, without quotes");
  return undefined;
}

/** `mode: loop` repeats the task. */
function loopOf(positions: Positions, table: Table): Table | undefined {
  const { mode } = table;
  const everyMs = intervalMs(positions, table);
  if (mode === undefined || mode === "normal") return undefined;
  if (mode !== "loop") {
    positions.problem(table, "mode", `mode is normal or loop; for times of its own write schedule`);
    return undefined;
  }
  if ("schedule" in table) {
    positions.problem(table, "mode", "mode: loop and schedule say when it runs; keep schedule");
    return undefined;
  }
  const ms = everyMs ?? LOOP_MS;
  positions.warn(
    table,
    "mode",
    `mode: loop starts the task again every ${formatDuration(ms)}: schedule: {every: ${formatDuration(ms)}}`,
  );
  return positions.around({ everyMs: ms }, table, "mode");
}

/** `5m`, `300s`, `1h`, `1d`; a bare number counts minutes. */
function intervalMs(positions: Positions, table: Table): number | undefined {
  const word = INTERVALS.find((name) => name in table);
  if (word === undefined) return undefined;
  const value = table[word];
  const number =
    typeof value === "number" ? value : typeof value === "string" && /^\d+$/.test(value) ? Number(value) : undefined;
  const unit = word === "check_interval_seconds" ? 1000 : 60_000;
  const ms = number === undefined ? parseDuration(String(value)) : number * unit;
  if (ms === undefined || ms <= 0)
    positions.problem(table, word, `${word} must be a duration: "5m", "300s", "1h", "1d"`);
  return ms;
}

/** Warns about keys that have no effect. */
function tellRest(positions: Positions, table: Table): void {
  const interval = INTERVALS.find((name) => name in table);
  if (interval !== undefined && table["mode"] !== "loop")
    positions.warn(table, interval, `${interval} changes nothing: turns are seen when they end, nothing is polled`);
  if ("agent" in table)
    positions.warn(table, "agent", `agent changes nothing: write model and provider, or runner, to choose who works`);
  if ("initial_prompt" in table && "goal" in table)
    positions.warn(
      table,
      "initial_prompt",
      "initial_prompt is not used, because there is a goal; write all of it there",
    );
}

export interface OpenLoomSettings {
  /** For tasks that say nothing else. */
  readonly defaults: Partial<TaskSpecInput>;
  readonly isVerbose: boolean;
  readonly warnings: readonly string[];
}

/** What to use instead of variables that have no effect. Those of the inbox, of notifications and of the page are read elsewhere. */
const INSTEAD: Readonly<Record<string, string>> = {
  OPENLOOM_OPENCODE_URL: "choose a model with model and provider in the task, or in config.toml",
  OPENLOOM_OPENCODE_USERNAME: "heddle login stores keys",
  OPENLOOM_OPENCODE_PASSWORD: "heddle login stores keys",
  OPENLOOM_OPENCODE_AUTO_START: "nothing else needs to run",
  OPENLOOM_DATABASE: "set HEDDLE_HOME",
  OPENLOOM_STALE_BUSY_CHECKS: "write stall: {after: 2m} into the task",
  OPENLOOM_IDLE_COMPLETES_TASK: "only checks complete a task",
  OPENLOOM_CHECK_INTERVAL_SECONDS: "nothing is polled",
  OPENLOOM_TIMEZONE: "write schedule: {time_zone: Europe/Berlin} into the task",
};

export function openLoomSettings(env: NodeJS.ProcessEnv): OpenLoomSettings {
  const warnings = Object.entries(INSTEAD).flatMap(([name, instead]) =>
    (env[name] ?? "") === "" ? [] : [`${name} has no effect; ${instead}`],
  );
  const positive = (name: string): number | undefined => {
    const text = env[name] ?? "";
    if (text === "" || /^[1-9]\d{0,14}$/.test(text)) return text === "" ? undefined : Number(text);
    warnings.push(`${name} is not a whole number above 0 and has no effect`);
    return undefined;
  };
  const flag = (name: string): boolean | undefined => {
    const text = (env[name] ?? "").toLowerCase();
    return text === "" ? undefined : ["1", "true", "yes", "on"].includes(text);
  };
  const tokens = positive("OPENLOOM_MAX_TASK_TOKENS");
  const minutes = positive("OPENLOOM_MAX_TASK_RUNTIME_MINUTES");
  const auto = flag("OPENLOOM_AUTO_ACCEPT_PERMISSIONS");
  const budget = defined({ tokens, timeMs: minutes === undefined ? undefined : minutes * 60_000 });
  return {
    defaults: {
      ...(Object.keys(budget).length === 0 ? {} : { budget }),
      ...(auto === undefined ? {} : { approval: auto ? ("never" as const) : ("on-request" as const) }),
    },
    isVerbose: flag("OPENLOOM_VERBOSE") === true,
    warnings,
  };
}
