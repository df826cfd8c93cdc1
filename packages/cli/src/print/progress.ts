/**
 * One line at the bottom of a terminal while nothing else is printed: what runs, for how long, and how long ago it last
 * printed something. Whatever is written next takes its place, so that it is never part of what stays on the screen.
 */
import type { Output } from "./output.ts";
import { duration } from "./style.ts";

/** A shorter silence needs no explanation. */
const QUIET_MS = 3000;
const EVERY_MS = 1000;
const ERASE = "\u001b[K";

export interface Progress {
  /** The same output, which removes the line before it writes. */
  readonly out: Output;
  /** `key` has begun, as a part of `whole`; of several, the latest is shown. */
  begin(key: string, text: string, whole?: string): void;
  /** `key` has done something that may not be on the screen. */
  touch(key: string): void;
  end(key: string): void;
}

export interface ProgressOptions {
  readonly out: Output;
  readonly stream: Pick<NodeJS.WriteStream, "write" | "columns">;
  readonly now?: () => number;
  /** Calls back about every second until it is disposed of. */
  readonly everySecond?: (tick: () => void) => Disposable;
}

interface Running {
  readonly text: string;
  readonly whole: string | undefined;
  readonly since: number;
  touchedAt: number | undefined;
}

/** Nothing is shown where there is no terminal. */
export function showProgress({ out, stream, now = Date.now, everySecond = byTimer }: ProgressOptions): Progress {
  const running = new Map<string, Running>();
  let ticking: Disposable | undefined;
  let isDrawn = false;
  let isAtLineStart = true;
  let writtenAt = now();

  function erase(): void {
    if (isDrawn) stream.write(ERASE);
    isDrawn = false;
  }
  function draw(): void {
    const latest = [...running.values()].at(-1);
    if (latest === undefined || !isAtLineStart || now() - writtenAt < QUIET_MS) return;
    // What runs inside a turn is that turn at work.
    const wholes = new Set([...running.values()].map(({ whole }) => whole));
    const parts = [...running.keys()].filter((key) => !wholes.has(key)).length;
    const others = parts > 1 ? `, ${parts - 1} more` : "";
    const text = `… ${progressText(latest, now())}${others}`;
    // The cursor stays at the beginning, so that another writer covers the line too.
    stream.write(`${cut(text, (stream.columns || 80) - 1)}${ERASE}\r`);
    isDrawn = true;
  }
  return {
    out: {
      isTerminal: out.isTerminal,
      get isClosed() {
        return out.isClosed;
      },
      get isBehind() {
        return out.isBehind;
      },
      write(text) {
        erase();
        if (text !== "") {
          isAtLineStart = text.endsWith("\n");
          writtenAt = now();
        }
        return out.write(text);
      },
    },
    begin(key, text, whole) {
      if (!out.isTerminal) return;
      running.set(key, { text, whole, since: now(), touchedAt: undefined });
      ticking ??= everySecond(draw);
    },
    touch(key) {
      const one = running.get(key);
      if (one !== undefined) one.touchedAt = now();
    },
    end(key) {
      running.delete(key);
      if (running.size > 0) return;
      erase();
      ticking?.[Symbol.dispose]();
      ticking = undefined;
    },
  };
}

function progressText({ text, since, touchedAt }: Running, now: number): string {
  const last = touchedAt === undefined ? "" : `, last output ${seconds(now - touchedAt)} ago`;
  return `${text}: ${seconds(now - since)}${last}`;
}

function seconds(ms: number): string {
  return duration(Math.max(1, Math.round(ms / 1000)) * 1000).replace(".0 s", " s");
}

/** A command keeps its beginning, the figures stay. */
function cut(text: string, columns: number): string {
  const [, head = text, figures = ""] = /^(.*)(: \d.*)$/s.exec(text) ?? [];
  const room = Math.max(1, columns - figures.length);
  return `${head.length <= room ? head : `${head.slice(0, room - 1)}…`}${figures}`.slice(0, columns);
}

function byTimer(tick: () => void): Disposable {
  const timer = setInterval(tick, EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
