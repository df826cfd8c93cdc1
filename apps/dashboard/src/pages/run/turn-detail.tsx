/** One turn: what began it, what it ran with, and a thread of one's own from there. */
import type { Turn } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { go } from "../../router.ts";
import { line } from "../../text/shown.ts";
import { tokens } from "../../words/figures.ts";

interface TurnDetailProps {
  readonly turn: Turn;
  readonly number: number;
  readonly mayFork: boolean;
  /** What began it. */
  readonly children: ReactNode;
}

export function TurnDetail({ turn, number, mayFork, children }: TurnDetailProps): ReactNode {
  const act = useAct();
  const { settings, contextUsed } = turn;
  const facts = [
    `${line(settings.provider)} ${line(settings.model)}`,
    line(settings.envelope ?? settings.sandboxMode),
    ...(turn.sandboxLevel === undefined ? [] : [`held by ${turn.sandboxLevel}`]),
    ...(contextUsed === undefined ? [] : [`${tokens(contextUsed)} tokens of context`]),
  ];
  const fork = async (): Promise<void> =>
    go(`/threads/${(await api().forkThread(turn.threadId, { atTurn: turn.id })).id}`);
  return (
    <div className="step-detail">
      <p className="meta">{facts.join(" · ")}</p>
      {children}
      {mayFork && turn.status !== "open" ? (
        <ActButton act={act} name={`Fork the thread after turn ${number}`} call={fork} />
      ) : null}
      <Refusal act={act} />
    </div>
  );
}
