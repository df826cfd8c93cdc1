/** One event, whole, with its hash. */
import type { ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Link, Problem, Waiting } from "../../parts/base.tsx";
import { line, shown } from "../../text/shown.ts";
import { fullTime, number } from "../../words/figures.ts";

export function EntryPane({ id }: { id: string }): ReactNode {
  const { data, error, reload } = useResource(`entry:${id}`, (signal) => api().evidence.get(id, { signal }));
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (data === undefined) return <Waiting />;
  const rows: readonly (readonly [string, ReactNode])[] = [
    ["type", <code key="t">{line(data.type)}</code>],
    ["at", fullTime(data.at)],
    ["author", line(data.author)],
    [
      "hash",
      <code key="h" className="wrap hash">
        {data.hash}
      </code>,
    ],
    [
      "stream",
      <code key="s" className="wrap">
        {line(data.stream)}
      </code>,
    ],
    ...(data.task === undefined
      ? []
      : [
          [
            "task",
            <Link key="k" to={`/tasks/${data.task}`} className="lk wrap">
              {data.task}
            </Link>,
          ] as const,
        ]),
    ...(data.thread === undefined
      ? []
      : [
          [
            "thread",
            <Link key="d" to={`/threads/${data.thread}`} className="lk wrap">
              {data.thread}
            </Link>,
          ] as const,
        ]),
    ...(data.imported === undefined ? [] : [["imported", line(JSON.stringify(data.imported))] as const]),
    ...(data.correctedBy === undefined
      ? []
      : [
          [
            "corrected by",
            <code key="c" className="wrap">
              {data.correctedBy}
            </code>,
          ] as const,
        ]),
  ];
  return (
    <>
      <h2 className="h">
        Event {number(data.position)} <span className="fg2">{data.version} of its stream</span>
      </h2>
      <dl className="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <pre className="out">{shown(JSON.stringify(data.body, null, 2))}</pre>
    </>
  );
}
