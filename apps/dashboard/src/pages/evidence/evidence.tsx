/** The audit: what verification said and up to where, every entry of the record, and one of them whole. */
import type { EvidenceEntry } from "@heddle/client";
import { useRef, useState, type ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Kbd, Problem, Waiting } from "../../parts/base.tsx";
import { useKeys } from "../../parts/keys.ts";
import { Space, useRowWindow } from "../../parts/row-window.tsx";
import { look, usePlace } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { brief, line } from "../../text/shown.ts";
import { clock, fullTime, number } from "../../words/figures.ts";
import { EntryPane } from "./entry-pane.tsx";
import { queryOf } from "./query.ts";
import { Verdict } from "./verdict.tsx";

const PAGE = 200;

interface Loaded {
  readonly entries: readonly EvidenceEntry[];
  readonly next: string | null;
  readonly count: number;
}

export function Evidence(): ReactNode {
  useTitle("Evidence");
  const { query } = usePlace();
  const text = query.get("q") ?? "";
  const [pages, setPages] = useState(1);
  const { data, error, reload } = useResource<Loaded>(`evidence:${text}:${pages}`, (signal) =>
    read(text, pages, signal),
  );
  const entries = data?.entries ?? [];
  const at = query.get("at");
  const index = entries.findIndex(({ id }) => id === at);
  const move = (to: number): void => {
    const next = entries[Math.max(0, Math.min(entries.length - 1, to))];
    if (next !== undefined) look({ at: next.id });
  };
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), j: () => move(index + 1), k: () => move(index - 1) });
  return (
    <main className="ev" aria-label="Evidence" id="main">
      <Verdict />
      <div className="ev-bar">
        <label className="filters wider">
          <Icon name="search" tone="fg2" />
          <input
            ref={field}
            type="search"
            aria-label="Filter the record"
            placeholder="words, or type:task.* author:user:ada task:… thread:… claim:question since:2026-11-16"
            defaultValue={text}
            onKeyDown={(event) => {
              if (event.key === "Enter") look({ q: event.currentTarget.value, at: undefined });
            }}
            onBlur={(event) => look({ q: event.currentTarget.value })}
          />
          <Kbd>/</Kbd>
        </label>
        <span className="fg2 t12">{data === undefined ? "" : `${number(data.count)} entries match`}</span>
      </div>
      <div className="ev-cols">
        <div className="ev-list">
          {error === undefined ? null : <Problem error={error} onRetry={reload} />}
          {data === undefined && error === undefined ? <Waiting lines={10} /> : null}
          {data === undefined ? null : <Table entries={entries} selected={at} />}
          {(data?.next ?? null) === null ? null : (
            <button type="button" className="btn more-rows" onClick={() => setPages(pages + 1)}>
              {PAGE} more
            </button>
          )}
        </div>
        <aside className="ev-side" aria-label="Event">
          {at === null ? (
            <p className="fg2">Choose an entry: its whole event is shown here, with its hash.</p>
          ) : (
            <EntryPane key={at} id={at} />
          )}
        </aside>
      </div>
    </main>
  );
}

async function read(text: string, pages: number, signal: AbortSignal): Promise<Loaded> {
  const filter = queryOf(text);
  const { count } = await api().evidence.count(filter, { signal });
  const entries: EvidenceEntry[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const { data, nextCursor } = await api().evidence.query(
      { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
      { signal },
    );
    entries.push(...data);
    if (nextCursor === null) return { entries, next: null, count };
    cursor = nextCursor;
  }
  return { entries, next: cursor ?? null, count };
}

function Table({ entries, selected }: { entries: readonly EvidenceEntry[]; selected: string | null }): ReactNode {
  const table = useRef<HTMLTableElement>(null);
  const at = entries.findIndex(({ id }) => id === selected);
  const { from, to, beforePx, afterPx } = useRowWindow(table, entries.length, at);
  if (entries.length === 0) return <p className="empty">Nothing on record is like that.</p>;
  return (
    <table className="et" ref={table} aria-rowcount={entries.length}>
      <thead>
        <tr>
          <th className="num">#</th>
          <th>When</th>
          <th>Who</th>
          <th>What</th>
          <th>About</th>
          <th>Hash</th>
        </tr>
      </thead>
      <tbody>
        <Space px={beforePx} />
        {entries.slice(from, to).map((entry, index) => (
          <tr
            key={entry.id}
            aria-rowindex={from + index + 1}
            className={entry.id === selected ? "sel" : ""}
            onClick={() => look({ at: entry.id })}
          >
            <td className="num">
              <button
                type="button"
                className="row-btn"
                onClick={() => look({ at: entry.id })}
                aria-label={`Event ${entry.position}`}
              >
                {entry.position}
              </button>
            </td>
            <td className="mono" title={fullTime(entry.at)}>
              {clock(entry.at, "ms")}
            </td>
            <td>{entry.author.startsWith("user") ? <b>{line(entry.author)}</b> : line(entry.author)}</td>
            <td className={entry.type === "task.stalled" ? "say" : ""}>{line(entry.type)}</td>
            <td>{brief(entry.text, 160)}</td>
            <td className="mono">{entry.hash.slice(0, 8)}</td>
          </tr>
        ))}
        <Space px={afterPx} />
      </tbody>
    </table>
  );
}
