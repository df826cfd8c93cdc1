/** Five figures, and beside each what is not in it. */
import type { StateAnswer } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { money, number, requests as without, tokens } from "../../words/figures.ts";
import type { Entries } from "./usage.tsx";

export function Figures({ entries, today }: { entries: Entries; today: string }): ReactNode {
  const { state } = useFacts();
  const all = totals(entries);
  const ofToday = totals(entries.filter(({ of }) => of.day === today));
  const verified = state.data?.counts.verified ?? 0;
  const cached = all.input === 0 ? 0 : Math.round((100 * all.cached) / all.input);
  return (
    <div className="figures">
      <Figure
        name="Known to cost"
        value={known(all)}
        note={
          all.unpriced === 0
            ? undefined
            : `${all.unpriced} of ${number(all.requests)} requests have no known price; they are not in it`
        }
        isSaid
      />
      <Figure
        name="Today"
        value={known(ofToday)}
        note={[
          ofToday.unpriced === 0 ? `${number(ofToday.requests)} requests` : without(ofToday.unpriced),
          ...limitText(state.data?.dayLimits ?? {}, ofToday),
        ].join("; ")}
        isSaid={ofToday.unpriced > 0}
      />
      <Figure name="Read by models" value={tokens(all.input)} note={`${cached}% of it from cache`} />
      <Figure name="Written by models" value={tokens(all.output)} note={`${tokens(all.reasoning)} of it reasoning`} />
      <Figure
        name="For each verified task"
        value={
          verified === 0
            ? "none yet"
            : all.costUsd === 0 && all.unpriced > 0
              ? "unknown"
              : money(all.costUsd / verified)
        }
        note={`${verified} verified in all; of what is known to cost`}
      />
    </div>
  );
}

type Limits = StateAnswer["dayLimits"];

/** What the home may use in a day, and whether that is used up: then no turn begins before the next day. */
function limitText({ costUsd, tokens: most }: Limits, today: ReturnType<typeof totals>): readonly string[] {
  const parts = [
    ...(costUsd === undefined ? [] : [`${money(costUsd)} a day`]),
    ...(most === undefined ? [] : [`${tokens(most)} tokens a day`]),
  ];
  if (parts.length === 0) return [];
  const isReached =
    (costUsd !== undefined && today.costUsd >= costUsd) || (most !== undefined && today.input + today.output >= most);
  return [`${isReached ? "limit reached" : "limit"}: ${parts.join(", ")}`];
}

function known({ costUsd, unpriced, requests }: ReturnType<typeof totals>): string {
  return costUsd === 0 && unpriced > 0 && unpriced === requests ? "unknown" : money(costUsd);
}

function Figure({
  name,
  value,
  note,
  isSaid,
}: {
  name: string;
  value: string;
  note: string | undefined;
  isSaid?: boolean;
}): ReactNode {
  return (
    <div>
      <h2>{name}</h2>
      <strong>{value}</strong>
      {note === undefined ? null : <p className={isSaid === true ? "say" : ""}>{note}</p>}
    </div>
  );
}

function totals(entries: Entries) {
  return entries.reduce(
    (sum, { requests, unpriced, usage, costUsd }) => ({
      requests: sum.requests + requests,
      unpriced: sum.unpriced + unpriced,
      costUsd: sum.costUsd + costUsd,
      input: sum.input + usage.inputTokens,
      cached: sum.cached + usage.cachedInputTokens,
      output: sum.output + usage.outputTokens,
      reasoning: sum.reasoning + usage.reasoningOutputTokens,
    }),
    { requests: 0, unpriced: 0, costUsd: 0, input: 0, cached: 0, output: 0, reasoning: 0 },
  );
}
