/** The story, one line a step, under the turn it belongs to. It follows the tail while one is at the end. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useKeys } from "../../parts/keys.ts";
import { Icon, Segments, Waiting } from "../../parts/base.tsx";
import { look, usePlace } from "../../router.ts";
import { isAct, isError, type Row } from "./steps.ts";
import { StepRow, TurnLine } from "./step-row.tsx";

type Only = "all" | "acts" | "errors";

interface StepsPaneProps {
  /** Whose stalls can be relieved here. */
  readonly taskId: string | undefined;
  readonly rows: readonly Row[];
  readonly turnCount: number;
  readonly selected: string | undefined;
  readonly onSelect: (key: string) => void;
  readonly older: number | null;
  readonly onOlder: () => void;
  readonly leftOut: number;
  readonly isLoading: boolean;
  readonly dock: ReactNode;
}

const AT_END_PX = 24;

export function StepsPane(props: StepsPaneProps): ReactNode {
  const { rows, selected, onSelect, older, onOlder, leftOut, dock } = props;
  const { query } = usePlace();
  const only = (query.get("only") ?? "all") as Only;
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => visible(rows, only, folded), [rows, only, folded]);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const tail = useTail({ list, count: shown.length, isReady: !props.isLoading });
  const errors = useMemo(() => rows.filter(isError), [rows]);
  const stepCount = useMemo(() => rows.filter(({ kind }) => kind === "item").length, [rows]);
  const move = (to: number): void => {
    const row = shown[Math.max(0, Math.min(shown.length - 1, to))];
    if (row === undefined) return;
    onSelect(row.key);
    list.current?.scrollToIndex(shown.indexOf(row), { align: "nearest" });
  };
  const at = shown.findIndex(({ key }) => key === selected);
  const problem = (by: 1 | -1): void => {
    const found =
      by === 1
        ? shown.findIndex((row, index) => index > at && isError(row))
        : shown.findLastIndex((row, index) => index < (at < 0 ? shown.length : at) && isError(row));
    if (found >= 0) move(found);
  };
  useKeys({
    j: () => move(at + 1),
    k: () => move(at < 0 ? shown.length - 1 : at - 1),
    ArrowDown: () => move(at + 1),
    ArrowUp: () => move(at < 0 ? shown.length - 1 : at - 1),
    Home: () => move(0),
    End: () => move(shown.length - 1),
    n: () => problem(1),
    N: () => problem(-1),
    f: tail.follow,
    z: () => setFolded(folded.size > 0 ? new Set() : new Set(turnKeys(rows).slice(0, -1))),
  });
  const toggle = (key: string): void => {
    const next = new Set(folded);
    if (!next.delete(key)) next.add(key);
    setFolded(next);
  };
  const heading = shown.findLast((row, index) => row.kind === "turn" && index <= tail.first);
  return (
    <section className="steps" aria-label="Steps">
      <h2 className="vh">Steps</h2>
      <header className="pane-top">
        <span className="h" aria-hidden="true">
          Steps
        </span>
        <span className="fg2 t12">
          {stepCount}
          {older === null ? "" : "+"} in {props.turnCount} {props.turnCount === 1 ? "turn" : "turns"}
        </span>
        <span className="grow" />
        <Segments
          label="Which steps"
          isSmall
          value={only}
          onChoose={(value) => look({ only: value === "all" ? undefined : value })}
          choices={[
            { value: "all", label: "All" },
            { value: "acts", label: "Acts" },
            { value: "errors", label: `Errors ${errors.length === 0 ? "" : errors.length}` },
          ]}
        />
      </header>
      {heading?.kind === "turn" && tail.first > shown.indexOf(heading) ? (
        <TurnLine
          row={heading}
          isSticky
          isFolded={false}
          onFold={() => toggle(heading.key)}
          onSelect={() => onSelect(heading.key)}
        />
      ) : null}
      <div className="tl" ref={box} tabIndex={-1}>
        {older === null ? null : (
          <button type="button" className="cutmark" onClick={onOlder}>
            Earlier steps are not loaded; load 500 more
          </button>
        )}
        {props.isLoading ? <Waiting lines={8} /> : null}
        <Virtualizer ref={list} scrollRef={box} as="ol" item="li" onScroll={tail.onScroll} itemSize={26} data={shown}>
          {(row) =>
            row.kind === "turn" ? (
              <TurnLine
                key={row.key}
                row={row}
                isFolded={folded.has(row.key)}
                onFold={() => toggle(row.key)}
                isSelected={row.key === selected}
                onSelect={() => onSelect(row.key)}
              />
            ) : (
              <StepRow
                key={row.key}
                row={row}
                isSelected={row.key === selected}
                onSelect={() => onSelect(row.key)}
                taskId={props.taskId}
              />
            )
          }
        </Virtualizer>
      </div>
      {tail.newer > 0 ? (
        <button type="button" className="newer btn" onClick={tail.follow}>
          <Icon name="down" small /> {tail.newer} newer
        </button>
      ) : null}
      {leftOut > 0 ? (
        <p className="cutmark">{leftOut} live pieces were left out; the end of each step has them</p>
      ) : null}
      {dock}
    </section>
  );
}

function turnKeys(rows: readonly Row[]): readonly string[] {
  return rows.flatMap((row) => (row.kind === "turn" ? [row.key] : []));
}

function visible(rows: readonly Row[], only: Only, folded: ReadonlySet<string>): readonly Row[] {
  let isFolded = false;
  return rows.filter((row) => {
    if (row.kind === "turn") {
      isFolded = folded.has(row.key);
      return only !== "errors";
    }
    if (isFolded && row.kind === "item") return false;
    return only === "all" || (only === "acts" ? isAct(row) : isError(row));
  });
}

interface TailOptions {
  readonly list: { readonly current: VirtualizerHandle | null };
  readonly count: number;
  readonly isReady: boolean;
}

interface Tail {
  readonly newer: number;
  /** The first row in sight. */
  readonly first: number;
  readonly onScroll: (offset: number) => void;
  readonly follow: () => void;
}

function useTail({ list, count, isReady }: TailOptions): Tail {
  const isAtEnd = useRef(true);
  const [seen, setSeen] = useState(0);
  const [first, setFirst] = useState(0);
  const follow = (): void => {
    isAtEnd.current = true;
    setSeen(count);
    list.current?.scrollToIndex(count - 1, { align: "end" });
  };
  useLayoutEffect(() => {
    const end = (): void => {
      if (isAtEnd.current && count > 0) list.current?.scrollToIndex(count - 1, { align: "end" });
    };
    end();
    // Rows that were never drawn have no height yet.
    const frame = requestAnimationFrame(end);
    return () => cancelAnimationFrame(frame);
  }, [count, isReady, list]);
  useEffect(() => {
    if (isAtEnd.current) setSeen(count);
  }, [count]);
  return {
    newer: Math.max(0, count - seen),
    first,
    follow,
    onScroll(offset) {
      const { current } = list;
      if (current === null) return;
      isAtEnd.current = current.scrollSize - current.viewportSize - offset < AT_END_PX;
      setFirst(current.findItemIndex(offset));
      if (isAtEnd.current) setSeen(count);
    },
  };
}
