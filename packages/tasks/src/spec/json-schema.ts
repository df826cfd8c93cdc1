/** JSON Schema of spec files for editors, made from TaskSpec by the rules of author-form.ts. */
import { TaskSpec } from "@heddle/protocol/tasks";
import { z } from "zod";
import { authorKey, CHECK_KINDS, isDuration, MAIN_FIELD } from "./author-form.ts";
import { DURATION_PATTERN, formatDuration } from "./durations.ts";
import { isTable, type Table } from "./positions.ts";

const CHECK = { $ref: "#/$defs/check" };
const TEXT = { type: "string", minLength: 1 };

/** Shown by editors beside the key. */
const MEANING: Readonly<Record<string, string>> = {
  name: "What it is called; the name of the file when absent",
  workspace: "The folder to work in, relative to this file",
  goal: "What is to be done",
  steps: "The way there, one text or {title, acceptance} each",
  acceptance: "What a person would check: given to the agent, not used for the verdict",
  checks: "What decides that it is done",
  deliver: "Paths and globs that the agent is hired to change: only these come from it when the checks run",
  apply: "Whether the folder is changed as the agent works, only with what was verified, or never",
  setup:
    "A command that the clean room of the checks runs first, such as npm ci; `makes`: paths and globs of what it makes of the work",
  protect: "Paths and globs that the agent must leave as they are",
  protect_tests: "No verdict rests on tests the agent wrote unless deliver names them, and none may be lost",
  second_opinion: "Another model that looks at work whose checks passed; it can only reject",
  runner: "Who carries out the turns: embedded, or an agent program (heddle runners); that of config.toml when absent",
  provider: "Whose model; that of config.toml when absent",
  model: "Which model; that of config.toml when absent",
  agents: "A contest: each of these does the whole task in a tree of its own, and one that is verified is picked",
  pick: "Of a contest: the first that is verified, or the best of all",
  order: "Of pick: best: what decides, and what among equals",
  score: "Of pick: best: a command that prints a number in its last line, the highest is best",
  keep: "Of a contest: whose trees and branches stay when it has ended",
  effort: "How hard the model thinks, as its provider knows it",
  sandbox: "What commands of the agent may do",
  envelope: "What the agent may do, by the name of an envelope; counts more than sandbox",
  ceiling: "The widest envelope that it may ever have",
  hops: "Envelopes that it goes through after the first: when the agent is done in one, the guards of the next decide",
  network: "Whether commands of the agent reach the network, or a list of the only hosts they reach",
  approval: "When a person is asked",
  schedule: "When it begins by itself: cron, every or at; or one text for any of them",
  depends_on: "Tasks that must be verified first, or claimed where they have no checks",
  priority: "Higher first",
  needs: "Labels that a worker must have to take it (heddle worker --label)",
  exclusive: "No other task runs in the same folder meanwhile",
  worktree: "A git worktree of its own",
  budget: "What it may take, all attempts together",
  retries: "Further attempts after failures of these classes",
  max_nudges: "Turns that may be started by themselves after the first",
  stall: "When silence is reported, and what is done then",
  notify: "Names of sinks; all when absent",
  labels: "Labels to find it by",
  before_archive: "Commands that must pass before it is archived",
  thread: "An existing thread to continue",
  abort: "With thread: what runs there is stopped first",
};

export function taskSchema(): object {
  const { $schema, $defs, ...whole } = z.toJSONSchema(TaskSpec, { io: "input" });
  const task = table(whole);
  const properties = isTable(task["properties"]) ? task["properties"] : {};
  for (const [key, value] of Object.entries(properties))
    properties[key] = { description: MEANING[key], ...short(key, isTable(value) ? value : {}) };
  const defs = Object.entries($defs ?? {}).map(([name, def]) => [name, author(def)] as const);
  const [first, ...others] = defs;
  return {
    $schema,
    title: "A task of Heddle",
    anyOf: [
      { $ref: "#/$defs/task" },
      {
        type: "object",
        properties: { tasks: { type: "array", items: { $ref: "#/$defs/task" } } },
        required: ["tasks"],
        additionalProperties: false,
      },
    ],
    $defs: {
      task: { ...task, properties, required: ["workspace", "goal"] },
      check: checkSchema(isTable(first?.[1]) ? first[1] : {}),
      ...Object.fromEntries(others),
    },
  };
}

function author(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(author);
  if (!isTable(schema)) return schema;
  if (schema["$ref"] === "#/$defs/__schema0") return CHECK;
  if (isTable(schema["properties"])) return table(schema);
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, author(value)]));
  const { default: _, ...bare } = inner;
  const { items } = bare;
  const isTexts = inner["type"] === "array" && isTable(items) && items["type"] === "string" && !("enum" in items);
  return isTexts ? { ...("default" in inner ? { default: inner["default"] } : {}), anyOf: [items, bare] } : inner;
}

function table(schema: Table): Table {
  const { properties, required, default: _, ...rest } = schema;
  const keys = Object.entries(isTable(properties) ? properties : {});
  return {
    ...rest,
    properties: Object.fromEntries(
      keys.map(([key, value]) => [authorKey(key), isDuration(key) ? duration(value) : author(value)]),
    ),
    ...(Array.isArray(required) ? { required: required.map((key) => authorKey(String(key))) } : {}),
  };
}

function duration(schema: unknown): Table {
  const ms = isTable(schema) ? schema["default"] : undefined;
  return {
    type: "string",
    pattern: DURATION_PATTERN,
    ...(typeof ms === "number" ? { default: formatDuration(ms) } : {}),
    examples: ["90s", "5m", "1h", "1d"],
  };
}

/** The short forms of keys of a task. */
function short(key: string, schema: Table): Table {
  switch (key) {
    case "schedule":
    case "second_opinion":
      return { anyOf: [TEXT, schema] };
    case "retries":
      return { anyOf: [{ type: "integer", minimum: 0 }, schema] };
    case "worktree":
      return { anyOf: [{ type: "boolean" }, schema] };
    case "setup":
      return { anyOf: [TEXT, { type: "array", items: TEXT, minItems: 1 }, schema] };
    case "checks":
      return { anyOf: [TEXT, schema] };
    case "agents": {
      const { items, ...rest } = schema;
      return { ...rest, items: { anyOf: [TEXT, items] } };
    }
    case "score":
      return { anyOf: [TEXT, { type: "array", items: TEXT, minItems: 1 }, schema] };
    case "order": {
      const { items } = schema;
      return { anyOf: [items, schema] };
    }
    case "steps": {
      const { items, ...rest } = schema;
      return { ...rest, items: { anyOf: [TEXT, items] } };
    }
    default:
      return schema;
  }
}

/** A command, the long form with `kind`, or the kind as a key. */
function checkSchema({ oneOf }: Table): Table {
  const long: readonly unknown[] = Array.isArray(oneOf) ? oneOf : [];
  return {
    anyOf: [
      TEXT,
      ...long,
      ...long.flatMap((form, index) => (isTable(form) ? [shortCheck(CHECK_KINDS[index] ?? "", form)] : [])),
    ],
  };
}

function shortCheck(kind: string, form: Table): Table {
  const { kind: _, ...properties } = isTable(form["properties"]) ? form["properties"] : {};
  const required = (Array.isArray(form["required"]) ? form["required"] : []).filter((key) => key !== "kind");
  const main = MAIN_FIELD[kind];
  const whole = { type: "object", properties, required, additionalProperties: false };
  const { [main ?? ""]: value, ...others } = properties;
  return {
    type: "object",
    properties: {
      ...others,
      [kind]: main === undefined ? whole : value === undefined ? whole : { anyOf: [value, whole] },
    },
    required: [kind],
    additionalProperties: false,
  };
}
