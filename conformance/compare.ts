/**
 * Two observations of one case in, what differs out. Sequences of events are compared as words, items field by field with
 * their counterparts of the same kind, everything else as it is. General rules (rules.ts) are applied before.
 */
import { stripVTControlCharacters } from "node:util";
import type { CaseSeen, RunSeen } from "./observe.ts";

export const ASPECTS = ["exit", "events", "items", "stdout", "shown", "requests", "asked", "files"] as const;
export type Aspect = (typeof ASPECTS)[number];

export interface Found {
  readonly aspect: Aspect;
  readonly codex: string;
  readonly heddle: string;
}

export type Line = Readonly<Record<string, unknown>> & { readonly type: string };

/** What is compared of the lines of a run. */
export type LineRule = (lines: readonly Line[]) => readonly Line[];

const MAX_SHOWN_CHARS = 400;

export interface CompareOptions {
  readonly rules: Readonly<Record<"codex" | "heddle", LineRule>>;
  readonly isUnordered?: boolean | undefined;
}

export function compare(codex: CaseSeen, heddle: CaseSeen, { rules, isUnordered }: CompareOptions): readonly Found[] {
  const found: Found[] = [];
  const note = (aspect: Aspect, theirs: unknown, ours: unknown): void => {
    const [left, right] = [show(theirs), show(ours)];
    if (left !== right) found.push({ aspect, codex: left, heddle: right });
  };
  const pairs = codex.runs.map((run, index) => [run, heddle.runs[index]] as const);
  const each = (take: (run: RunSeen) => unknown): readonly [unknown, unknown] => [
    pairs.map(([run]) => take(run)),
    pairs.map(([, run]) => (run === undefined ? "not run" : take(run))),
  ];
  note("exit", ...each((run) => run.exit));
  note("requests", ...each((run) => run.requests));
  note("asked", ...onlyDifferent(...each((run) => run.asked ?? null)));
  note("files", ...onlyDifferent(codex.files, heddle.files));
  const linesFor = (seen: CaseSeen, rule: LineRule): readonly (readonly Line[])[] =>
    seen.runs.map((run) => (isUnordered === true ? sorted(rule(linesOf(run))) : rule(linesOf(run))));
  const lines = { codex: linesFor(codex, rules.codex), heddle: linesFor(heddle, rules.heddle) };
  note("events", lines.codex.map(wordsOf).join(" | "), lines.heddle.map(wordsOf).join(" | "));
  const items = pairs.map((_, index) => itemDifferences(lines.codex[index] ?? [], lines.heddle[index] ?? []));
  note(
    "items",
    items.flatMap(({ codex: theirs }) => theirs),
    items.flatMap(({ heddle: ours }) => ours),
  );
  note("stdout", ...each((run) => (isJson(run) ? "" : run.stdout)));
  note("shown", ...each((run) => (isJson(run) ? "" : landmarksOf(run.stderr))));
  return found;
}

/** What scripts look for in the text for people on stderr: its head and its figures. The rest is each program's own. */
const LANDMARK = /^((workdir|model|provider|approval): .*|sandbox: [a-z-]+|session id: |tokens used$|user$)/;

function landmarksOf(stderr: string): string {
  const lines = stripVTControlCharacters(stderr).split("\n");
  const marks = lines.flatMap((line, index) => {
    const mark = LANDMARK.exec(line)?.[0];
    if (mark === undefined) return [];
    return mark === "tokens used" ? [`${mark} ${lines[index + 1] ?? ""}`] : [mark.trim()];
  });
  return marks.join(" · ");
}

function show(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= MAX_SHOWN_CHARS ? text : `${text.slice(0, MAX_SHOWN_CHARS)}…`;
}

function isJson({ args }: RunSeen): boolean {
  return args.includes("--json") || args.includes("--experimental-json");
}

/** The lines of a run with --json; a line that is not JSON is a line of its own kind. */
function linesOf(run: RunSeen): readonly Line[] {
  if (!isJson(run)) return [];
  const texts = run.stdout.split("\n").filter((text) => text !== "");
  return texts.map((text): Line => {
    try {
      return JSON.parse(text);
    } catch {
      return { type: "not-json", text };
    }
  });
}

/** Lines without the numbers of their items, in an order of their own. */
function sorted(lines: readonly Line[]): readonly Line[] {
  const bare = lines.map((line) => ({
    ...line,
    ...(isObject(line["item"]) ? { item: { ...line["item"], id: "" } } : {}),
  }));
  return bare.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

const WORDS: Readonly<Record<string, string>> = {
  "thread.started": "thread",
  "turn.started": "turn",
  "turn.completed": "done",
  "turn.failed": "failed",
};

/** `thread turn +command_execution command_execution:failed agent_message done` */
function wordsOf(lines: readonly Line[]): string {
  return lines.map(wordOf).join(" ");
}

function wordOf(line: Line): string {
  const item = line["item"];
  if (typeof item !== "object" || item === null) return WORDS[line.type] ?? line.type;
  const { type, status } = item as { type?: string; status?: string };
  if (line.type === "item.started") return `+${type}`;
  if (line.type === "item.updated") return `~${type}`;
  return status === undefined || status === "completed" ? String(type) : `${type}:${status}`;
}

interface Sides {
  readonly codex: readonly string[];
  readonly heddle: readonly string[];
}

/** Each line is held to the line of its kind at the same index among its kind, so that an added one does not hide others. */
function itemDifferences(codex: readonly Line[], heddle: readonly Line[]): Sides {
  const sides: { codex: string[]; heddle: string[] } = { codex: [], heddle: [] };
  const ours = byKind(heddle);
  for (const [kind, theirs] of byKind(codex)) {
    for (const [index, line] of theirs.entries()) {
      const counterpart = ours.get(kind)?.[index];
      if (counterpart === undefined) continue;
      const [left, right] = onlyDifferent(line, counterpart);
      if (show(left) === show(right)) continue;
      sides.codex.push(`${kind}: ${show(left)}`);
      sides.heddle.push(`${kind}: ${show(right)}`);
    }
  }
  return sides;
}

function byKind(lines: readonly Line[]): ReadonlyMap<string, readonly Line[]> {
  return Map.groupBy(lines, (line) => wordOf(line));
}

/** Two values without what is the same in both; `missing` stands for a field that only the other has. */
function onlyDifferent(left: unknown, right: unknown): readonly [unknown, unknown] {
  if (JSON.stringify(left) === JSON.stringify(right)) return ["same", "same"];
  if (!isObject(left) || !isObject(right)) return [left, right];
  const different: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const [a, b] = onlyDifferent(left[key] ?? missing(left, key), right[key] ?? missing(right, key));
    if (JSON.stringify(a) === JSON.stringify(b)) continue;
    different[0][key] = a;
    different[1][key] = b;
  }
  // The order of fields is no difference.
  return Object.keys(different[0]).length === 0 ? ["same", "same"] : different;
}

function missing(from: Readonly<Record<string, unknown>>, key: string): unknown {
  return key in from ? from[key] : "missing";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
