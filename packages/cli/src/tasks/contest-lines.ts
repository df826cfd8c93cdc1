/** Contests and benchmarks as tables for people. What is not known is said, and is never a zero. */
import { visibleLine, type TaskRecord } from "@heddle/protocol";
import type { ContestRow } from "@heddle/protocol/tasks";
import { orderOf, pickOf, type BenchmarkReport } from "@heddle/tasks";
import { marked } from "../print/screen.ts";
import { duration, money, type Style } from "../print/style.ts";
import { paintState, standing } from "./outcome.ts";

export function contestLines(task: TaskRecord, rows: readonly ContestRow[], style: Style): readonly string[] {
  const { spec, contest } = task;
  const pick = pickOf(spec);
  const rule = pick === "best" ? `best by ${orderOf(spec).join(", then ")}` : "the first that is verified";
  const picked = contest?.contestants.find(({ number }) => number === contest.picked?.number);
  const outcome =
    picked === undefined
      ? (task.reason ?? task.wait?.message ?? standing(task))
      : `picked ${picked.number} ${picked.name}: ${contest?.picked?.reason ?? ""}`;
  return [
    marked(`${task.id}  ${style.bold(visibleLine(spec.name))}`),
    marked(`${paintState(task.state, style)}  ${visibleLine(outcome)}`),
    `picks      ${rule}`,
    ...rowLines(rows, style),
  ];
}

export function rowLines(rows: readonly ContestRow[], style: Style): readonly string[] {
  const head = ["", "", "contestant", "verdict", "cost", "time", "turns", "change", "score"];
  const cells = rows.map((row) => [
    row.isPicked ? "→" : "",
    String(row.number),
    visibleLine(row.name),
    row.isVerified ? "verified" : visibleLine(row.state === "verified" ? "refused" : `not verified`),
    costText(row),
    duration(row.timeMs),
    String(row.turns),
    row.size === undefined ? "-" : `${row.size.files} files +${row.size.added} -${row.size.removed}`,
    row.score === undefined ? "-" : String(row.score),
  ]);
  const lines = aligned([head, ...cells]);
  const [title = "", ...texts] = lines;
  return [
    style.dim(`  ${title}`),
    ...texts.flatMap((text, index) => {
      const row = rows[index];
      if (row === undefined) return [];
      const branch = row.branch === undefined ? "" : `, branch ${visibleLine(row.branch)}`;
      return [`  ${text}`, style.dim(`       ${visibleLine(row.why)}${branch}  ${row.taskId}`)];
    }),
  ];
}

export function benchmarkLines({ label, agents, contests }: BenchmarkReport, style: Style): readonly string[] {
  const head = ["agent", "verified", "rate", "95 %", "cost", "cost/run", "time/run", "open"];
  const cells = agents.map((agent) => [
    visibleLine(agent.name),
    `${agent.verified} of ${agent.runs}`,
    agent.rate === undefined ? "-" : percent(agent.rate),
    agent.interval === undefined ? "-" : agent.interval.map(percent).join(" to "),
    costText(agent),
    agent.isCostPartial || agent.runs === 0 ? "-" : money((agent.costUsd ?? 0) / agent.runs),
    agent.runs === 0 ? "-" : duration(Math.round(agent.timeMs / agent.runs)),
    String(agent.open),
  ]);
  const [title = "", ...texts] = aligned([head, ...cells]);
  return [
    marked(`${style.bold(label)}  ${contests.length} contests`),
    style.dim(`  ${title}`),
    ...texts.map((text) => `  ${text}`),
    ...contests.map(({ id, name, rows }) => {
      const verified = rows.filter(({ isVerified }) => isVerified).map((row) => visibleLine(row.name));
      return style.dim(`  ${id}  ${visibleLine(name)}: ${verified.length === 0 ? "nobody" : verified.join(", ")}`);
    }),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

/** Known in part: it is more; not known at all: that is said. */
function costText({ costUsd, isCostPartial }: Pick<ContestRow, "costUsd" | "isCostPartial">): string {
  if (costUsd === undefined) return "unknown";
  return `${money(costUsd)}${isCostPartial ? " or more" : ""}`;
}

function aligned(table: readonly (readonly string[])[]): readonly string[] {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
