/**
 * A terminal as far as it matters for where text ends up: columns, wrapping, tabs, CR, backspace, cursor movement, erasing,
 * colours and OSC passed over. Resizing reflows lines that were wrapped, as modern terminals do.
 */
interface Row {
  cells: string[];
  /** The next row goes on with this one. */
  isWrapped: boolean;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const PIECES = new RegExp(String.raw`\u001b\[[\d;?]*[A-Za-z]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\s\S]`, "gu");

/** The rows of the screen and of what scrolled away, as they look. */
export function render(text: string, columns: number): readonly string[] {
  return draw(text, columns).map(({ cells }) => cells.join("").trimEnd());
}

/** The same after the window was made another size. */
export function reflow(text: string, columns: number, resizedTo: number): readonly string[] {
  const lines: string[] = [];
  let open = "";
  for (const { cells, isWrapped } of draw(text, columns)) {
    open += cells.join("");
    if (isWrapped) continue;
    lines.push(open.trimEnd());
    open = "";
  }
  return lines.flatMap((line) => render(line, resizedTo));
}

function draw(text: string, columns: number): readonly Row[] {
  const rows: Row[] = [{ cells: [], isWrapped: false }];
  let [row, column] = [0, 0];
  const at = (index: number): Row => {
    while (rows.length <= index) rows.push({ cells: [], isWrapped: false });
    return rows[index] ?? { cells: [], isWrapped: false };
  };
  const put = (piece: string): void => {
    if (/^(?:\p{Mn}|\p{Me}|\p{Cf})$/u.test(piece)) {
      const before = at(row).cells;
      before[Math.max(0, column - 1)] = `${before[Math.max(0, column - 1)] ?? ""}${piece}`;
      return;
    }
    const width = WIDE.test(piece) ? 2 : 1;
    if (column + width > columns) {
      at(row).isWrapped = true;
      [row, column] = [row + 1, 0];
    }
    const { cells } = at(row);
    while (cells.length < column) cells.push(" ");
    cells[column] = piece;
    if (width === 2) cells[column + 1] = "";
    column += width;
  };
  const control = (piece: string): void => {
    const [, number = "", letter = ""] = /^\[([\d;?]*)([A-Za-z])$/.exec(piece.slice(1)) ?? [];
    const count = Math.max(1, Number.parseInt(number, 10) || 1);
    if (letter === "A") row = Math.max(0, row - count);
    if (letter === "B") row += count;
    if (letter === "C") column = Math.min(columns - 1, column + count);
    if (letter === "D") column = Math.max(0, column - count);
    if (letter === "G") column = Math.min(columns, count) - 1;
    if (letter === "H") [row, column] = [0, 0];
    if (letter === "K") at(row).cells.length = column;
    if (letter === "J") rows.length = row + 1;
  };
  for (const piece of text.match(PIECES) ?? []) {
    if (piece.length > 1 && piece.startsWith("\u001b")) control(piece);
    else if (piece === "\n" || piece === "\u0085") [row, column] = [row + 1, 0];
    else if (piece === "\r") column = 0;
    else if (piece === "\b") column = Math.max(0, column - 1);
    else if (piece === "\t") column = Math.min(columns - 1, (Math.floor(column / 8) + 1) * 8);
    else put(piece);
  }
  at(row);
  return rows;
}
