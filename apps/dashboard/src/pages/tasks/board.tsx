/** Tasks as a board: columns by what they wait for; cards move by what happens to them. */
import type { TaskSummary } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { Age, Link } from "../../parts/base.tsx";
import { StateWord } from "../../parts/state-word.tsx";
import { line } from "../../text/shown.ts";
import { cost, folderName } from "../../words/figures.ts";
import { lineOf, needOf } from "./groups.ts";
import { Pips } from "./task-table.tsx";

const COLUMNS: readonly (readonly [string, (task: TaskSummary) => boolean])[] = [
  ["In the queue", (task) => needOf(task) === "queue"],
  ["Running", (task) => needOf(task) === "running"],
  ["Needs you", (task) => needOf(task) === "you"],
  ["Not proven", (task) => needOf(task) === "unproven" || task.state === "cancelled" || task.state === "archived"],
  ["Verified", (task) => task.state === "verified"],
];

export function Board({ tasks, selected }: { tasks: readonly TaskSummary[]; selected: string | undefined }): ReactNode {
  return (
    <div className="board">
      {COLUMNS.map(([name, isIn]) => {
        const cards = tasks.filter(isIn);
        return (
          <section className="bcol" key={name} aria-label={name}>
            <h2 className="band">
              {name} <span>{cards.length}</span>
            </h2>
            <ul>
              {cards.map((task) => (
                <Card key={task.id} task={task} isSelected={task.id === selected} />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}

function Card({ task, isSelected }: { task: TaskSummary; isSelected: boolean }): ReactNode {
  const { spent } = task;
  const hasBegun = spent.turns > 0 || spent.tokens > 0;
  return (
    <li className={isSelected ? "bc sel" : "bc"}>
      <p className="row">
        <StateWord task={task} />
        <span className="grow" />
        <span className="fg2 t11 cut">{line(folderName(task.workspace))}</span>
      </p>
      <Link to={`/tasks/${task.id}`} className="bn">
        {line(task.name)}
      </Link>
      <p className="bw2">{lineOf(task)}</p>
      <p className="bf">
        <Pips task={task} />
        <Age at={task.updatedAt} />
        {hasBegun ? ` · ${cost({ known: spent.costUsd, isPartial: spent.isCostPartial })}` : ""}
      </p>
    </li>
  );
}
