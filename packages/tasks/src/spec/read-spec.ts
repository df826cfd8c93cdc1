/**
 * Specs from text. One YAML document is one task; several documents, or a list under `tasks:`, are several; a Markdown page
 * is one. All problems are reported at once, each with file, line, column and what to write.
 */
import { homedir } from "node:os";
import path from "node:path";
import { PLAIN } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";
import { specInput } from "./author-form.ts";
import { explainIssues } from "./explain.ts";
import { markdownTask } from "./markdown.ts";
import { withoutOpenLoom } from "./openloom.ts";
import { isTable, Positions, SpecError, type Table } from "./positions.ts";
import { applyRules } from "./rules.ts";
import { yamlDocuments } from "./yaml-values.ts";

export interface SpecText {
  /** Its name in messages; the extension tells YAML from Markdown. */
  readonly file: string;
  readonly text: string | Uint8Array;
  /** Absent: by the extension, or by the text where there is none. */
  readonly format?: "yaml" | "markdown";
  readonly folder: string;
}

export interface SpecOptions {
  /** For keys that a task leaves out. */
  readonly defaults?: Partial<TaskSpecInput>;
  readonly minEveryMs?: number;
  /** Of its YAML; absent: enough for a thousand tasks. */
  readonly maxTokens?: number;
}

export interface ReadSpecs {
  readonly specs: readonly TaskSpec[];
  /** About lines without effect, and tasks that nothing can verify. */
  readonly warnings: readonly string[];
}

/** A goal of many pages is shorter. */
export const MAX_SPEC_BYTES = 1024 * 1024;
const MIN_EVERY_MS = 60_000;
const MAX_TASKS = 1000;

export function readSpec(source: SpecText, options: SpecOptions = {}): ReadSpecs {
  const text = plainText(source);
  const positions = new Positions(source.file, text, options.maxTokens);
  const tables = tablesOf(positions, text, source);
  if (tables.length === 0 && positions.problems.length === 0) positions.problemAt(0, "", "there is no task in it");
  const specs = tables.flatMap((table, index) => {
    const spec = specOf(positions, table, { ...source, ...options, index, count: tables.length });
    return spec === undefined ? [] : [spec];
  });
  if (positions.problems.length > 0)
    throw new SpecError(positions.problems.toSorted((a, b) => a.line - b.line || a.column - b.column));
  return { specs, warnings: positions.warnings };
}

function plainText({ file, text }: SpecText): string {
  const refuse = (message: string): SpecError => new SpecError([{ file, line: 1, column: 1, key: "", message }]);
  const bytes = typeof text === "string" ? Buffer.byteLength(text) : text.byteLength;
  if (bytes > MAX_SPEC_BYTES) throw refuse(`it is over ${MAX_SPEC_BYTES / 1024 / 1024} MiB; a task is a page or two`);
  let plain: string;
  try {
    plain = typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
  } catch {
    throw refuse("it is not UTF-8 text; save it as UTF-8");
  }
  if (plain.includes("\0")) throw refuse("it has a NUL byte, so it is not text");
  return plain;
}

function tablesOf(positions: Positions, text: string, source: SpecText): readonly Table[] {
  if ((source.format ?? formatOf(source.file, text)) === "markdown")
    return onlyTables(positions, markdownTask(positions, text));
  const bom = text.startsWith("\uFEFF") ? 1 : 0;
  const documents = onlyTables(positions, yamlDocuments(positions, { text: text.slice(bom), base: bom }));
  return documents.flatMap((table) => ("tasks" in table ? listedTasks(positions, table) : [table]));
}

/** A page begins with a heading, or with front matter followed by text; anything else is YAML. */
function formatOf(file: string, text: string): "yaml" | "markdown" {
  const ending = path.extname(file).toLowerCase();
  if (ending === ".md" || ending === ".markdown") return "markdown";
  if (ending === ".yaml" || ending === ".yml" || ending === ".json") return "yaml";
  const isPage =
    /^\uFEFF?---[ \t]*\r?\n(?:[^]*?\n)?---[ \t]*\r?\n(?!\s*["\w-]+\s*:)/.test(text) ||
    /^\uFEFF?\s*##? +\S.*\n(?!\s*["\w-]+\s*:)/.test(text);
  return isPage ? "markdown" : "yaml";
}

function onlyTables(positions: Positions, values: readonly unknown[]): readonly Table[] {
  return values.filter((value): value is Table => {
    if (isTable(value)) return true;
    if (value !== undefined)
      positions.problemAt(0, "", "a task is a table: lines of key: value, such as goal: what is to be done");
    return false;
  });
}

function listedTasks(positions: Positions, table: Table): readonly Table[] {
  const { tasks, ...rest } = table;
  for (const key of Object.keys(rest))
    positions.problem(table, key, `"${key}" stands beside tasks; write it into each task`);
  if (!Array.isArray(tasks)) {
    positions.problem(table, "tasks", "tasks is a list: lines that begin with - name: …");
    return [];
  }
  if (tasks.length > MAX_TASKS) {
    positions.problem(table, "tasks", `these are ${tasks.length} tasks; write at most ${MAX_TASKS} into one file`);
    return [];
  }
  const list: readonly unknown[] = tasks;
  return list.flatMap((entry, index) => {
    if (isTable(entry)) return [entry];
    positions.problem(list, index, "a task is a table: lines of key: value");
    return [];
  });
}

interface Reading extends SpecText, SpecOptions {
  readonly index: number;
  readonly count: number;
}

function specOf(positions: Positions, table: Table, reading: Reading): TaskSpec | undefined {
  const before = positions.problems.length;
  const input = withDefaults(positions, specInput(positions, withoutOpenLoom(positions, table)), reading);
  const result = TaskSpec.safeParse(input, PLAIN);
  if (!result.success) {
    explainIssues(positions, input, result.error.issues);
    return undefined;
  }
  if (positions.problems.length > before) return undefined;
  const spec = result.data;
  applyRules(positions, input, spec, { minEveryMs: reading.minEveryMs ?? MIN_EVERY_MS });
  const isDraft = spec.agents !== undefined && spec.worktree === undefined && spec.apply === undefined;
  const whole: TaskSpec = isDraft ? { ...spec, apply: "on-verified" } : spec;
  return whole.abort && whole.thread === undefined ? { ...whole, abort: false } : whole;
}

/** Name and workspace from the file, and the defaults of the caller. */
function withDefaults(positions: Positions, input: Table, reading: Reading): Table {
  const { defaults = {}, file, folder, count } = reading;
  const base = path.basename(file, path.extname(file));
  const name = count === 1 && /^[\w. -]+$/.test(base) ? { name: base } : {};
  const filled = positions.joined(input, { ...name, ...defaults });
  const { workspace } = filled;
  if (typeof workspace === "string" && workspace !== "") filled["workspace"] = absolute(workspace, folder);
  if (isTable(filled["budget"]) && defaults.budget !== undefined && filled["budget"] !== defaults.budget)
    filled["budget"] = positions.joined(filled["budget"], { ...defaults.budget });
  return filled;
}

function absolute(workspace: string, folder: string): string {
  const home = /^~(?:\/|$)/.test(workspace) ? path.join(homedir(), workspace.slice(1)) : workspace;
  return path.resolve(folder, home);
}
