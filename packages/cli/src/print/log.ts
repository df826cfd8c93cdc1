/**
 * `--log`: what happens as lines on stderr, for people or for programs. Secrets that the process knows are removed from
 * every text. Something that happens too often is counted instead of told.
 */
import type { Redactor } from "@heddle/journal";
import { visibleLine } from "@heddle/protocol";
import type { LogEntry, LogLevel } from "@heddle/runtime/telemetry";
import type { OptionSpec, ParsedArgs } from "../args.ts";
import { say } from "./screen.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];

export const LOG_OPTIONS: readonly OptionSpec[] = [
  {
    name: "log",
    value: "FORMAT",
    choices: ["text", "json"],
    help: "A line on stderr for each thing that matters: turns, tasks, refused logins, a store that refuses",
  },
  {
    name: "log-level",
    value: "LEVEL",
    choices: LEVELS,
    help: "Only lines of this level and above; default: info",
  },
];

export interface Log {
  /** Absent: nothing but what Heddle always says is wanted. */
  readonly write: ((entry: LogEntry) => void) | undefined;
  /** A line of Heddle's own. */
  readonly line: (text: string) => void;
  /** From here on the secrets that it knows are removed too. */
  use(redactor: Pick<Redactor, "text">): void;
}

/** Of one kind in one minute. */
const MAX_IN_WINDOW = 100;
const WINDOW_MS = 60_000;

export function openLog(args: ParsedArgs, print: (line: string) => void = printLine, now = Date.now): Log {
  const format = args.value("log") ?? (args.value("log-level") === undefined ? undefined : "text");
  if (format === undefined) return { write: undefined, line: say, use: () => undefined };
  const least = LEVELS.findIndex((level) => level === (args.value("log-level") ?? "info"));
  const limit = createLimit(now);
  let redact = (text: string): string => text;
  const write = (entry: LogEntry): void => {
    if (LEVELS.indexOf(entry.level) < least) return;
    const left = limit(entry.event);
    if (left === undefined) return;
    const texts = Object.entries({ ...entry.fields, suppressed: left === 0 ? undefined : left }).flatMap(
      ([name, value]) =>
        value === undefined ? [] : [[name, typeof value === "string" ? redact(value) : value] as const],
    );
    const { level, event } = entry;
    const time = new Date(now()).toISOString();
    print(
      format === "json"
        ? JSON.stringify({ time, level, event, ...Object.fromEntries(texts) })
        : asText(time, entry, texts),
    );
  };
  return {
    write,
    line: (message) => write({ level: "info", event: "note", fields: { message } }),
    use(redactor) {
      redact = (text) => redactor.text(text);
    },
  };
}

function printLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

function asText(
  time: string,
  { level, event }: LogEntry,
  fields: readonly (readonly [string, string | number])[],
): string {
  const shown = fields.map(([name, value]) => {
    const text = visibleLine(String(value));
    return `${name}=${/^[\w.:/@-]+$/.test(text) ? text : JSON.stringify(text)}`;
  });
  return [time, level.toUpperCase().padEnd(5), event, ...shown].join(" ");
}

/** undefined: too many of a kind came lately; otherwise how many were left out since the last line. */
function createLimit(now: () => number): (event: string) => number | undefined {
  const kinds = new Map<string, { since: number; count: number; left: number }>();
  return (event) => {
    const at = now();
    const kind = kinds.get(event) ?? { since: at, count: 0, left: 0 };
    kinds.set(event, kind);
    if (at - kind.since >= WINDOW_MS) Object.assign(kind, { since: at, count: 0 });
    kind.count += 1;
    if (kind.count > MAX_IN_WINDOW) {
      kind.left += 1;
      return undefined;
    }
    const { left } = kind;
    kind.left = 0;
    return left;
  };
}
