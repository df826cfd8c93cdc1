/** Tasks as a table, by need. */
import type { TaskSummary } from "@heddle/protocol/http";
import { useEffect, useRef, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { Age, Link } from "../../parts/base.tsx";
import { Space, useRowWindow } from "../../parts/row-window.tsx";
import { StateWord } from "../../parts/state-word.tsx";
import { look } from "../../router.ts";
import { line } from "../../text/shown.ts";
import { cost, folderName, tokens } from "../../words/figures.ts";
import { checksText, lineOf, nearestLimit, NEEDS, pipsOf, type Need } from "./groups.ts";

interface TableProps {
  readonly groups: readonly (readonly [Need, readonly TaskSummary[]])[];
  readonly selected: string | undefined;
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (id: string) => void;
}

export function TaskTable({ groups, selected, chosen, onChoose }: TableProps): ReactNode {
  const { state } = useFacts();
  const table = useRef<HTMLTableElement>(null);
  const order = groups.flatMap(([, members]) => members);
  const at = order.findIndex(({ id }) => id === selected);
  const { from, to, beforePx, afterPx } = useRowWindow(table, order.length, at);
  if (groups.length === 0) return null;
  const starts = groups.map((_, index) => groups.slice(0, index).reduce((sum, [, members]) => sum + members.length, 0));
  return (
    <table className="tk" ref={table} aria-rowcount={order.length}>
      <thead>
        <tr>
          <th>State</th>
          <th>Task</th>
          <th>Where</th>
          <th>Checks</th>
          <th className="num">Turns</th>
          <th className="num">Tokens</th>
          <th className="num">Money</th>
          <th>Nearest limit</th>
          <th className="num">Last sign</th>
        </tr>
      </thead>
      <Space px={beforePx} isBody />
      {groups.map(([need, members], group) => (
        <tbody key={need}>
          <tr className="grp">
            <th colSpan={9} scope="rowgroup">
              {NEEDS[need]}
              <span>
                {members.length}
                {need === "running" ? ` of ${state.data?.config.concurrency ?? "?"} places` : ""}
              </span>
            </th>
          </tr>
          {members.slice(...within(starts[group] ?? 0, from, to)).map((task, index) => (
            <Row
              key={task.id}
              index={Math.max(from, starts[group] ?? 0) + index + 1}
              task={task}
              isSelected={task.id === selected}
              isChosen={chosen.has(task.id)}
              onChoose={() => onChoose(task.id)}
            />
          ))}
        </tbody>
      ))}
      <Space px={afterPx} isBody />
    </table>
  );
}

/** What of a group that begins at `start` is between two places of the whole. */
function within(start: number, from: number, to: number): [number, number] {
  return [Math.max(0, from - start), Math.max(0, to - start)];
}

interface RowProps {
  /** In the whole table, from 1. */
  readonly index: number;
  readonly task: TaskSummary;
  readonly isSelected: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Row({ index, task, isSelected, isChosen, onChoose }: RowProps): ReactNode {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isSelected) row.current?.scrollIntoView({ block: "nearest" });
  }, [isSelected]);
  const { spent, budget } = task;
  const hasBegun = spent.turns > 0 || spent.tokens > 0;
  return (
    <tr
      className={isSelected ? "sel" : ""}
      aria-rowindex={index}
      aria-selected={isSelected}
      ref={row}
      onFocus={() => isSelected || look({ sel: task.id })}
    >
      <td>
        <input
          type="checkbox"
          className="pick-box"
          aria-label={`Select ${line(task.name)}`}
          checked={isChosen}
          onChange={onChoose}
        />
        <StateWord task={task} />
      </td>
      <td className="nm">
        <Link to={`/tasks/${task.id}`}>{line(task.name)}</Link>
        {task.labels.map((label) => (
          <span className="tag" key={label}>
            {line(label)}
          </span>
        ))}
        {task.attempt > 1 ? <span className="tag">attempt {task.attempt}</span> : null}
        <p>{lineOf(task)}</p>
      </td>
      <td title={line(task.workspace)}>{line(folderName(task.workspace))}</td>
      <td>
        <Pips task={task} />
        <span className="cw">{checksText(task)}</span>
      </td>
      <td className="num">{hasBegun ? `${spent.turns} of ${budget.turns}` : ""}</td>
      <td className="num">{hasBegun ? tokens(spent.tokens) : ""}</td>
      <td className="num">{hasBegun ? <Money task={task} /> : ""}</td>
      <td className="bud">{hasBegun ? <Nearest task={task} /> : null}</td>
      <td className="num">
        <Age at={task.activity?.lastOutputAt ?? task.updatedAt} />
      </td>
    </tr>
  );
}

function Money({ task: { spent } }: { task: TaskSummary }): ReactNode {
  if (!spent.isCostPartial) return cost({ known: spent.costUsd, isPartial: false });
  return (
    <span className="say">
      {spent.costUsd === 0 ? "unknown" : `${cost({ known: spent.costUsd, isPartial: false })} + ?`}
    </span>
  );
}

export function Pips({ task }: { task: Pick<TaskSummary, "state" | "checks"> }): ReactNode {
  const { vacuous } = task.checks;
  return (
    <span
      className="pips"
      role="img"
      aria-label={`${task.state === "verified" ? "verified, " : ""}checks: ${checksText(task)}${vacuous === 0 ? "" : `, ${vacuous} vacuous`}`}
    >
      {pipsOf(task)
        .slice(0, 12)
        .map((pip, index) => (
          <i key={index} className={pip} />
        ))}
    </span>
  );
}

function Nearest({ task }: { task: TaskSummary }): ReactNode {
  const { name, share } = nearestLimit(task);
  const percent = Math.round(share * 100);
  const tone = percent >= 100 ? "no" : "";
  return (
    <>
      <span className="meter" aria-hidden="true">
        <i className={tone} style={{ width: `${Math.min(100, percent)}%` }} />
      </span>
      <span className={`bw ${tone}`}>
        {name} {percent}%
      </span>
    </>
  );
}
