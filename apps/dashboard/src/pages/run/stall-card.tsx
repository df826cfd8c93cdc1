/** A stall, where it happened: the process, what it waits for in words, and who did what about it. */
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Icon } from "../../parts/base.tsx";
import { brief } from "../../text/shown.ts";
import { age, clock, duration } from "../../words/figures.ts";
import { whoIs, type Row } from "./steps.ts";

type StallRow = Extract<Row, { kind: "stall" }>;
type Culprit = StallRow["stall"]["culprits"][number];

const ACTS: Readonly<Record<string, string>> = {
  report: "Reported",
  eof: "Input ended",
  "kill-child": "Child killed",
  interrupt: "Turn interrupted",
  retry: "Tried again",
};

export function StallCard({ row, taskId }: { row: StallRow; taskId: string | undefined }): ReactNode {
  const { stall, acts, recoveredAt } = row;
  const now = useNow();
  const until = recoveredAt ?? acts.at(-1)?.at;
  return (
    <div className="stall">
      <Icon name="stalled" tone="say" />
      <div className="grow">
        <p>
          <b className="say">
            {until === undefined ? `Hangs, for ${age(now.at - row.at)}.` : `Hung for ${duration(until - row.at)}.`}
          </b>{" "}
          {stall.culprits.length === 0 ? brief(stall.message) : null}
        </p>
        {stall.culprits.map((culprit) => (
          <Process key={culprit.pid} culprit={culprit} />
        ))}
        {acts.map(({ at, author, act }) => (
          <p className="meta" key={at}>
            <b>
              {ACTS[act.action] ?? act.action} by {whoIs(author)}
            </b>{" "}
            at {clock(at)}: {brief(act.message)}
          </p>
        ))}
        {until === undefined && taskId !== undefined ? <Relief taskId={taskId} /> : null}
      </div>
    </div>
  );
}

function Relief({ taskId }: { taskId: string }): ReactNode {
  const act = useAct();
  const { server } = useFacts();
  if (server.data === undefined || server.data.principal.role === "viewer") return null;
  const relieve = (action: "kill-child" | "eof" | "interrupt") => () => api().tasks.relieve(taskId, { action });
  return (
    <>
      <div className="acts relief">
        <ActButton act={act} name="Kill the child" call={relieve("kill-child")} />
        <ActButton act={act} name="End its input" call={relieve("eof")} />
        <ActButton act={act} name="Interrupt the turn" call={relieve("interrupt")} />
      </div>
      <Refusal act={act} />
    </>
  );
}

/** States of the kernel, in words. */
const STATES: Readonly<Record<string, string>> = {
  R: "running",
  S: "asleep",
  D: "asleep, and cannot be interrupted",
  Z: "ended, and nobody has taken its exit code",
  T: "stopped",
};

function Process({ culprit }: { culprit: Culprit }): ReactNode {
  const { pid, command, state, waitChannel, cpuMs, openSockets, readsStdin } = culprit;
  return (
    <>
      <p>
        <code>{brief(command)}</code>, pid {pid}
        {readsStdin ? ", waits for input on stdin" : ""}
      </p>
      <p className="meta">
        {STATES[state] ?? `state ${brief(state)}`}
        {waitChannel === undefined ? null : (
          <>
            {" "}
            in <code>{brief(waitChannel)}</code>
          </>
        )}{" "}
        · CPU {(cpuMs / 1000).toFixed(2)} s · {openSockets === 0 ? "no sockets" : `${openSockets} sockets`}
      </p>
    </>
  );
}
