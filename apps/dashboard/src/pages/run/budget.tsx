/** What it may take and what it has taken: solid is what ended turns took, hatched the open one. */
import type { Task, Turn } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useNow } from "../../live/link.ts";
import { duration, money, tokens } from "../../words/figures.ts";

interface Line {
  readonly name: string;
  readonly done: number;
  readonly open: number;
  readonly limit: number | undefined;
  readonly text: string;
}

export function Budget({ task, openTurn }: { task: Task; openTurn: Turn | undefined }): ReactNode {
  const now = useNow();
  return (
    <section aria-label="Budget">
      <h2 className="ch">Budget {openTurn === undefined ? null : <span>hatched: the open turn</span>}</h2>
      <dl className="budget">
        {linesOf(task, openTurn, now.at).map((line) => (
          <Meter key={line.name} line={line} />
        ))}
      </dl>
    </section>
  );
}

function linesOf({ spec, spent, extraBudget }: Task, turn: Turn | undefined, now: number): readonly Line[] {
  const { budget } = spec;
  const limit = (name: "turns" | "tokens" | "timeMs"): number => budget[name] + (extraBudget[name] ?? 0);
  const openTokens = turn === undefined ? 0 : turn.usage.inputTokens + turn.usage.outputTokens;
  const openMs = turn === undefined ? 0 : Math.max(0, now - turn.admittedAt);
  const openUsd = turn?.costUsd ?? 0;
  const isUnknown = spent.isCostPartial || (turn !== undefined && turn.costUsd === undefined && openTokens > 0);
  const usdLimit = budget.costUsd === undefined ? undefined : budget.costUsd + (extraBudget["costUsd"] ?? 0);
  const used = spent.costUsd + openUsd;
  const usdText = isUnknown ? (used === 0 ? "unknown" : `${money(used)} + ?`) : money(used);
  const turns = spent.turns + (turn === undefined ? 0 : 1);
  return [
    {
      name: "turns",
      done: spent.turns,
      open: turns - spent.turns,
      limit: limit("turns"),
      text: `${turns} of ${limit("turns")}`,
    },
    {
      name: "tokens",
      done: spent.tokens,
      open: openTokens,
      limit: limit("tokens"),
      text: `${tokens(spent.tokens + openTokens)} of ${tokens(limit("tokens"))}`,
    },
    {
      name: "money",
      done: spent.costUsd,
      open: openUsd,
      limit: usdLimit,
      text: usdLimit === undefined ? usdText : `${usdText} of ${money(usdLimit)}`,
    },
    {
      name: "time",
      done: spent.timeMs,
      open: openMs,
      limit: limit("timeMs"),
      text: `${duration(spent.timeMs + openMs)} of ${duration(limit("timeMs"))}`,
    },
    {
      name: "nudges",
      done: spent.nudges,
      open: 0,
      limit: spec.maxNudges,
      text: `${spent.nudges} of ${spec.maxNudges}`,
    },
  ];
}

function Meter({ line: { name, done, open, limit, text } }: { line: Line }): ReactNode {
  const share = (value: number): number =>
    limit === undefined || limit === 0 ? 0 : Math.min(100, (100 * value) / limit);
  const tone = limit !== undefined && done + open >= limit ? "no" : "";
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {limit === undefined ? (
          <span className="fg2 t11">no limit</span>
        ) : (
          <span className="meter" aria-hidden="true">
            <i style={{ width: `${share(done + open)}%` }} className={`open ${tone}`} />
            <i style={{ width: `${share(done)}%` }} className={tone} />
          </span>
        )}
      </dd>
      <dd className="r">{text}</dd>
    </>
  );
}
