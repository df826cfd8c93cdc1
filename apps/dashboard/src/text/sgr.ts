/**
 * What a command printed, as lines of coloured pieces: SGR colours are drawn, `\r`, `\b` and erase-line are carried out
 * within their line, every other sequence is dropped and counted. What is left passes `visibleText`.
 */
import { visibleText } from "@heddle/protocol/visible-text";

export interface Piece {
  readonly text: string;
  /** Class names: `f1` to `f7` colours, `b` bold, `d` dim, `u` underlined. */
  readonly style: string;
}
export interface Printed {
  readonly lines: readonly (readonly Piece[])[];
  readonly dropped: number;
}

interface Cell {
  readonly letter: string;
  readonly style: string;
}

/* oxlint-disable no-control-regex -- control characters are what is read here */
const SEQUENCE =
  /\u001b(?:\[([0-9;:?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/y;
const MAX_LINE_CELLS = 20_000;

export function printed(text: string): Printed {
  const lines: (readonly Piece[])[] = [];
  let line: Cell[] = [];
  let at = 0;
  let style = "";
  let dropped = 0;
  const end = (): void => {
    lines.push(piecesOf(line));
    line = [];
    at = 0;
  };
  for (let index = 0; index < text.length;) {
    const letter = text[index] ?? "";
    if (letter === "\u001b") {
      SEQUENCE.lastIndex = index;
      const found = SEQUENCE.exec(text);
      index += found?.[0].length ?? 1;
      if (found?.[2] === "m") style = styleAfter(style, found[1] ?? "");
      else if (found?.[2] === "K") line = erased(line, at, found[1] ?? "");
      else dropped += 1;
      continue;
    }
    const code = text.codePointAt(index) ?? 0;
    const whole = String.fromCodePoint(code);
    index += whole.length;
    if (letter === "\n") end();
    else if (letter === "\r") at = 0;
    else if (letter === "\b") at = Math.max(0, at - 1);
    else if (at < MAX_LINE_CELLS) line[at++] = { letter: whole, style };
  }
  if (line.length > 0) end();
  return { lines, dropped };
}

function erased(line: readonly Cell[], at: number, how: string): Cell[] {
  if (how === "" || how === "0") return line.slice(0, at);
  if (how === "2") return [];
  return line.map((cell, index) => (index <= at ? { letter: " ", style: "" } : cell));
}

function piecesOf(line: readonly (Cell | undefined)[]): readonly Piece[] {
  const pieces: { text: string; style: string }[] = [];
  for (const cell of line) {
    const { letter, style } = cell ?? { letter: " ", style: "" };
    const last = pieces.at(-1);
    if (last?.style === style) last.text += letter;
    else pieces.push({ text: letter, style });
  }
  return pieces.map(({ text, style }) => ({ text: visibleText(text), style }));
}

/** Green of a terminal is no verdict: it is drawn in a colour of its own, like the other five. */
function styleAfter(before: string, given: string): string {
  const styles = new Set(before.split(" ").filter(Boolean));
  const codes = given.split(/[;:]/).map(Number);
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) styles.clear();
    else if (code === 1) styles.add("b");
    else if (code === 2) styles.add("d");
    else if (code === 4) styles.add("u");
    else if (code === 22) ["b", "d"].forEach((one) => styles.delete(one));
    else if (code === 24) styles.delete("u");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      for (const one of styles) if (one.startsWith("f")) styles.delete(one);
      if (code !== 39) styles.add(`f${code % 10}`);
    } else if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : 4;
  }
  return [...styles].toSorted().join(" ");
}
