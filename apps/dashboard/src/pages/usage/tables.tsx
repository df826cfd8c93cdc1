/** The same by model, by task and by folder, as tables. */
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { Link } from "../../parts/base.tsx";
import { StateWord } from "../../parts/state-word.tsx";
import { line } from "../../text/shown.ts";
import { folderName, money, number, tokens } from "../../words/figures.ts";
import type { Unit } from "./chart.tsx";
import type { Entries } from "./usage.tsx";

type Entry = Entries[number];

function Price({ entry: { costUsd, unpriced, requests } }: { entry: Entry }): ReactNode {
  if (unpriced > 0 && costUsd === 0)
    return <span className="say">{unpriced === requests ? "unknown" : "unknown in part"}</span>;
  return money(costUsd);
}

const byCost = (a: Entry, b: Entry): number => b.costUsd - a.costUsd || b.usage.inputTokens - a.usage.inputTokens;

export function ModelTable({ entries }: { entries: Entries }): ReactNode {
  return (
    <>
      <h2 className="band">By model</h2>
      <div className="scroll-x" tabIndex={0} role="region" aria-label="Usage by model">
        <table className="ut">
          <thead>
            <tr>
              <th>Model</th>
              <th>Provider</th>
              <th className="num">Requests</th>
              <th className="num">Read</th>
              <th className="num">Cached</th>
              <th className="num">Written</th>
              <th className="num">Money</th>
              <th>Not in it</th>
            </tr>
          </thead>
          <tbody>
            {entries.toSorted(byCost).map((entry) => (
              <tr key={`${entry.of.provider}/${entry.of.model}`}>
                <td>
                  <b>{line(entry.of.model ?? "")}</b>
                </td>
                <td>{line(entry.of.provider ?? "")}</td>
                <td className="num">{number(entry.requests)}</td>
                <td className="num">{tokens(entry.usage.inputTokens)}</td>
                <td className="num">
                  {entry.usage.inputTokens === 0
                    ? ""
                    : `${Math.round((100 * entry.usage.cachedInputTokens) / entry.usage.inputTokens)}%`}
                </td>
                <td className="num">{tokens(entry.usage.outputTokens)}</td>
                <td className="num">
                  <Price entry={entry} />
                </td>
                <td className="say">{entry.unpriced === 0 ? "" : `${entry.unpriced} without a price`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const MOST_TASKS = 30;

export function TaskTable({ entries }: { entries: Entries }): ReactNode {
  const { state, stopped } = useFacts();
  const known = [...(state.data?.tasks ?? []), ...(stopped.data ?? [])];
  const rows = entries.filter(({ of }) => of.task !== undefined && of.task !== "").toSorted(byCost);
  if (rows.length === 0) return null;
  return (
    <>
      <h2 className="band">
        By task <span>{rows.length > MOST_TASKS ? `the ${MOST_TASKS} that took the most` : ""}</span>
      </h2>
      <div className="scroll-x" tabIndex={0} role="region" aria-label="Usage by task">
        <table className="ut">
          <thead>
            <tr>
              <th>Task</th>
              <th className="num">Requests</th>
              <th className="num">Tokens</th>
              <th className="num">Money</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_TASKS).map((entry) => {
              const task = known.find(({ id }) => id === entry.of.task);
              return (
                <tr key={entry.of.task}>
                  <td>
                    {task === undefined ? null : <StateWord task={task} />}
                    <Link to={`/tasks/${entry.of.task ?? ""}`} className="lk">
                      {line(task?.name ?? entry.of.task ?? "")}
                    </Link>
                  </td>
                  <td className="num">{number(entry.requests)}</td>
                  <td className="num">{tokens(entry.usage.inputTokens + entry.usage.outputTokens)}</td>
                  <td className="num">
                    <Price entry={entry} />{" "}
                    {entry.unpriced > 0 && entry.costUsd > 0 ? <span className="say">+{entry.unpriced}</span> : null}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function FolderList({ entries, unit }: { entries: Entries; unit: Unit }): ReactNode {
  const amount = ({ costUsd, usage }: Entry): number =>
    unit === "money" ? costUsd : usage.inputTokens + usage.outputTokens;
  const rows = entries.toSorted((a, b) => amount(b) - amount(a));
  const most = Math.max(...rows.map(amount), Number.MIN_VALUE);
  return (
    <section aria-label="By folder">
      <h2 className="band">By folder</h2>
      <ul className="wl">
        {rows.map((entry) => (
          <li key={entry.of.workspace ?? ""} title={line(entry.of.workspace ?? "")}>
            <span className="cut">
              {entry.of.workspace === undefined ? "none" : line(folderName(entry.of.workspace))}
            </span>
            <span className="meter flat" aria-hidden="true">
              <i style={{ width: `${(100 * amount(entry)) / most}%` }} />
            </span>
            <span className="r">
              {unit === "money" ? <Price entry={entry} /> : tokens(amount(entry))}
              {unit === "money" && entry.unpriced > 0 && entry.costUsd > 0 ? (
                <span className="say"> +{entry.unpriced}</span>
              ) : null}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
