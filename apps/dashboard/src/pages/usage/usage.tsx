/** Where tokens and money went. A price that is not known is never nothing: it is named, and drawn as a hatched cap. */
import type { UsageBy, UsagePage } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { useNow } from "../../live/link.ts";
import { Problem, Segments, Waiting } from "../../parts/base.tsx";
import { look, usePlace } from "../../router.ts";
import { useTitle } from "../../shell.tsx";
import { Chart, type Unit } from "./chart.tsx";
import { Figures } from "./figures.tsx";
import { FolderList, ModelTable, TaskTable } from "./tables.tsx";

export type Entries = UsagePage["data"];

const MOST_PAGES = 20;
const DAY_MS = 86_400_000;

export function Usage(): ReactNode {
  useTitle("Usage");
  const { query } = usePlace();
  const now = useNow();
  const days = query.get("days") ?? "14";
  const unit = (query.get("unit") ?? "money") as Unit;
  const today = new Date(now.at).toISOString().slice(0, 10);
  const from =
    days === "all" ? undefined : new Date(Date.parse(today) - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 10);
  const { data, error, reload } = useResource(
    `usage:${days}:${today}`,
    async (signal) => ({
      byDay: await readAll(["day", "model"], from, signal),
      byModel: await readAll(["model", "provider"], from, signal),
      byFolder: await readAll(["workspace"], from, signal),
      byTask: await readAll(["task"], from, signal),
    }),
    { on: ({ body }) => body.type === "task.turn-ended" || body.type === "turn.completed" },
  );
  return (
    <main className="us" aria-label="Usage" id="main">
      <header className="top">
        <h1>Usage</h1>
        <Segments
          label="Days"
          value={days}
          onChoose={(value) => look({ days: value })}
          choices={[
            { value: "1", label: "Today" },
            { value: "7", label: "7 days" },
            { value: "14", label: "14 days" },
            { value: "30", label: "30 days" },
            { value: "all", label: "All" },
          ]}
        />
        <span className="grow" />
        <span className="fg2 t12 wide">days in UTC, each answer of a model counted once, on its day</span>
        <Segments
          label="Unit"
          value={unit}
          onChoose={(value) => look({ unit: value })}
          choices={[
            { value: "money", label: "Money" },
            { value: "tokens", label: "Tokens" },
          ]}
        />
        {data === undefined ? null : (
          <button type="button" className="btn" onClick={() => download(data.byDay)}>
            CSV
          </button>
        )}
      </header>
      <div className="us-body">
        {error === undefined ? null : <Problem error={error} onRetry={reload} />}
        {data === undefined && error === undefined ? <Waiting lines={8} /> : null}
        {data?.byDay.length === 0 ? <p className="empty">No model was asked in these days.</p> : null}
        {data === undefined || data.byDay.length === 0 ? null : (
          <>
            <Figures entries={data.byDay} today={today} />
            <Chart entries={data.byDay} unit={unit} from={from} to={today} />
            <div className="us-cols">
              <div>
                <ModelTable entries={data.byModel} />
                <TaskTable entries={data.byTask} />
              </div>
              <FolderList entries={data.byFolder} unit={unit} />
            </div>
          </>
        )}
      </div>
    </main>
  );
}

async function readAll(by: readonly UsageBy[], from: string | undefined, signal: AbortSignal): Promise<Entries> {
  const all: Entries[number][] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const given = {
      by,
      limit: 100,
      ...(from === undefined ? {} : { from }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    const { data, nextCursor } = await api().usage(given, { signal });
    all.push(...data);
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return all;
}

/** What is on the page, made here: nothing is asked of the server again. */
function download(entries: Entries): void {
  const head = [
    "day",
    "model",
    "requests",
    "without_price",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "cost_usd_known",
  ];
  const rows = entries.map(({ of, requests, unpriced, usage, costUsd }) => [
    of.day ?? "",
    of.model ?? "",
    requests,
    unpriced,
    usage.inputTokens,
    usage.cachedInputTokens,
    usage.outputTokens,
    costUsd,
  ]);
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "heddle-usage.csv";
  link.click();
  URL.revokeObjectURL(url);
}

/** A spreadsheet takes a text that begins so for a formula. */
function cell(value: string | number): string {
  const text = typeof value === "number" ? String(value) : value.replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
