/**
 * Of a table with many rows only those in sight are drawn, and some around them; the rest is space of their height. Rows
 * that are few are all drawn, so that a browser finds words in them.
 */
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode, type RefObject } from "react";

export interface RowWindow {
  readonly from: number;
  /** The first that is not drawn any more. */
  readonly to: number;
  readonly beforePx: number;
  readonly afterPx: number;
}

const FEW = 200;
/** Drawn beyond what is in sight, on both sides. */
const AROUND = 30;
/** The window moves by so many, not with each row. */
const STEP = 10;
const FIRST_GUESS_PX = 40;

interface Sight {
  readonly first: number;
  readonly count: number;
}

/** `selected` is brought into sight; below zero: none is. */
export function useRowWindow(table: RefObject<HTMLTableElement | null>, count: number, selected: number): RowWindow {
  const isLong = count > FEW;
  const rowPx = useRef(FIRST_GUESS_PX);
  const [sight, setSight] = useState<Sight>({ first: 0, count: 2 * AROUND });
  useLayoutEffect(() => {
    const rows = table.current?.querySelectorAll("tr[aria-rowindex]");
    const [first, last] = [rows?.[0], rows?.[rows.length - 1]];
    if (rows === undefined || first === undefined || last === undefined) return;
    const px = (last.getBoundingClientRect().bottom - first.getBoundingClientRect().top) / rows.length;
    if (px > 0) rowPx.current = px;
  });
  useEffect(() => {
    const box = scrollerOf(table.current);
    if (!isLong || box === undefined) return undefined;
    const look = (): void => {
      const above = scrolledPx(table.current, box);
      const first = Math.max(0, Math.floor(above / rowPx.current / STEP) * STEP);
      const shown = Math.ceil(box.clientHeight / rowPx.current / STEP) * STEP + STEP;
      setSight((before) => (before.first === first && before.count === shown ? before : { first, count: shown }));
    };
    look();
    const resized = new ResizeObserver(look);
    resized.observe(box);
    box.addEventListener("scroll", look, { passive: true });
    return () => {
      resized.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, [table, isLong]);
  const from = isLong ? Math.min(Math.max(0, sight.first - AROUND), Math.max(0, count - 1)) : 0;
  const to = isLong ? Math.min(count, sight.first + sight.count + AROUND) : count;
  useEffect(() => {
    const box = scrollerOf(table.current);
    if (box === undefined || selected < 0 || (selected >= from && selected < to)) return;
    box.scrollTop += selected * rowPx.current - scrolledPx(table.current, box) - box.clientHeight / 2;
    // Only a choice moves the list; scrolling away from it does not bring it back.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [selected]);
  return { from, to, beforePx: from * rowPx.current, afterPx: (count - to) * rowPx.current };
}

function scrollerOf(table: HTMLElement | null): HTMLElement | undefined {
  for (let at = table?.parentElement; at; at = at.parentElement)
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  return undefined;
}

/** How much of the table is above what is in sight. */
function scrolledPx(table: HTMLElement | null, box: HTMLElement): number {
  return table === null ? 0 : box.getBoundingClientRect().top - table.getBoundingClientRect().top;
}

/** In place of rows that are not drawn. */
export function Space({ px, isBody }: { px: number; isBody?: boolean }): ReactNode {
  if (px === 0) return null;
  const row = (
    <tr aria-hidden="true">
      <td className="space" style={{ height: px }} />
    </tr>
  );
  return isBody === true ? <tbody>{row}</tbody> : row;
}
