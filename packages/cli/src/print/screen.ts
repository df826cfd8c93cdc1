/**
 * How text of others (agents, models, tools, checks, files) stands on a screen: each of its lines begins with a gutter that no
 * line of Heddle has, also where a long line is broken, and lines in which Heddle says how work was judged begin with a mark
 * that no text of others can hold (visible-text.ts). Lines are broken here, before the terminal does, because a terminal
 * goes on at its first column.
 */
import { MARK, visibleLine, visibleText, withoutMark } from "@heddle/protocol";
import type { Output } from "./output.ts";
import { openOutput } from "./output.ts";

export const GUTTER = "| ";

/** A line of Heddle about how work stands. */
export function marked(line: string): string {
  return `${MARK} ${line}`;
}

/** Text of others as lines of its own. */
export function quoted(text: string): readonly string[] {
  return visibleText(text)
    .split("\n")
    .map((line) => (line === "" ? GUTTER.trimEnd() : `${GUTTER}${line}`));
}

/** Text of others that begins behind words of Heddle: its later lines stand in the gutter. */
export function behind(text: string): string {
  const [first = "", ...rest] = visibleText(text).split("\n");
  return [first, ...rest.map((line) => `${GUTTER}${line}`)].join("\n");
}

/** It stands in the gutter already, whatever its colour. */
export function isQuoted(line: string): boolean {
  return line.replace(COLOURS, "").startsWith(GUTTER.trimEnd());
}

/** A name of others in brackets, which it cannot close. */
export function label(name: string): string {
  return `[${visibleLine(name).replaceAll("]", "\\x5d")}]`;
}

/** Text of others as it arrives, piece by piece. */
export interface Quote {
  /** `isAtLineStart`: where the screen is. */
  add(piece: string, isAtLineStart: boolean): string;
}

/** More than a mark with accents takes. */
const MAX_TAIL_CHARS = 32;

export function createQuote(): Quote {
  let tail = "";
  return {
    add(piece, isAtLineStart) {
      const joined = withoutMark(`${isAtLineStart ? "" : tail}${visibleText(piece)}`);
      const text = joined.slice(isAtLineStart ? 0 : tail.length);
      tail = joined.slice(-MAX_TAIL_CHARS);
      const lines = text.split("\n");
      return lines
        .map((line, index) => {
          if (index === 0 && !isAtLineStart) return line;
          // What is still to come begins its line itself.
          if (line === "") return index === lines.length - 1 ? "" : GUTTER.trimEnd();
          return `${GUTTER}${line}`;
        })
        .join("\n");
    },
  };
}

/** stdout or stderr for people: lines fit into the terminal as wide as it is at that moment. `isRaw`: for programs, as it is. */
export function openScreen(stream: NodeJS.WriteStream, { isRaw = false }: { readonly isRaw?: boolean } = {}): Output {
  const output = openOutput(stream);
  return isRaw || !output.isTerminal ? output : fitted(output, () => stream.columns);
}

export function fitted(output: Output, columns: () => number): Output {
  const fit = createFitter();
  return {
    isTerminal: output.isTerminal,
    get isClosed() {
      return output.isClosed;
    },
    get isBehind() {
      return output.isBehind;
    },
    write: (text) => output.write(fit(text, columns())),
  };
}

/** One line of Heddle on stderr, now. What follows a line end in it stands in the gutter. */
export function say(text: string): void {
  const line = `heddle: ${behind(text)}\n`;
  process.stderr.write(process.stderr.isTTY ? createFitter()(line, process.stderr.columns) : line);
}

/** The same for text of others: its line ends are shown, so that it stays one line. */
export function sayLine(text: string): void {
  say(visibleLine(text));
}

/** Only Heddle's own: visible text holds no escape. */
const COLOUR = `\u001b${String.raw`\[[\d;]*m`}`;
const COLOURS = new RegExp(COLOUR, "g");
const PIECES = new RegExp(String.raw`${COLOUR}|[\s\S]`, "gu");
const TAB_COLUMNS = 8;
/** Terminals that do not say how wide they are. */
const DEFAULT_COLUMNS = 80;

/** Breaks lines that are longer than the screen is wide; knows from one piece to the next how long the line is. */
export function createFitter(): (text: string, columns: number) => string {
  let column = 0;
  return (text, columns) => {
    // The last column stays free: terminals differ in when they go on to the next line.
    const room = Math.max(GUTTER.length + 2, (columns > 0 ? columns : DEFAULT_COLUMNS) - 1);
    let shown = "";
    for (const piece of text.match(PIECES) ?? []) {
      const width = piece === "\t" ? TAB_COLUMNS - (column % TAB_COLUMNS) : maxColumnsOf(piece);
      if (piece === "\n") column = 0;
      else if (width > 0 && column + width > room) {
        shown += `\n${GUTTER}`;
        column = GUTTER.length;
        if (piece === "\t") continue;
      }
      column += width;
      shown += piece === "\t" ? " ".repeat(width) : piece;
    }
    return shown;
  };
}

/**
 * At most so many columns: terminals differ in what they draw wide, and to break a line early does no harm. So accents count,
 * and whatever may be wide is.
 */
function maxColumnsOf(piece: string): number {
  const code = piece.codePointAt(0) ?? 0;
  if (code < 0x20) return 0;
  if (code < 0x1100) return 1;
  return code >= 0x2e80 || /\p{Emoji}|[\u1100-\u11ff\u2329\u232a]/u.test(piece) ? 2 : 1;
}
