/** What the frame and the page Now stand on: asked for once, and again when an event says that it has changed. */
import type { Approval, ServerAnswer, StateAnswer, StreamedEvent, TaskSummary } from "@heddle/protocol/http";
import { createContext, useContext, useEffect, type ReactNode } from "react";
import { openFeed, tell } from "./feed.ts";
import { heardEvent, setServerTime } from "./link.ts";
import { reloadAll, useResource, type Resource } from "./resource.ts";
import { api } from "./session.ts";

export interface Facts {
  readonly server: Resource<ServerAnswer>;
  readonly state: Resource<StateAnswer>;
  readonly approvals: Resource<readonly Approval[]>;
  /** Tasks that do not go on by themselves. */
  readonly stopped: Resource<readonly TaskSummary[]>;
}

const FactsContext = createContext<Facts | undefined>(undefined);

export function useFacts(): Facts {
  const facts = useContext(FactsContext);
  if (facts === undefined) throw new Error("drawn outside of FactsProvider");
  return facts;
}

function isOfTask({ taskId }: StreamedEvent): boolean {
  return taskId !== undefined;
}

function isOfQuestion({ body }: StreamedEvent): boolean {
  return body.type === "approval.requested" || body.type === "approval.resolved";
}

/** A question of a task is a wait of that task, and its end is one too. */
function mayAsk(event: StreamedEvent): boolean {
  return isOfQuestion(event) || isOfTask(event);
}

/** What moves a page that is about everything: tasks, questions of any thread, begun and ended turns. */
const TYPES = [
  "created",
  "waited",
  "woken",
  "taken",
  "prepared",
  "prompted",
  "turn-ended",
  "progressed",
  "claimed",
  "checking",
  "checked",
  "verified",
  "rejected",
  "merged",
  "paused",
  "resumed",
  "stalled",
  "recovered",
  "stall-acted",
  "failed",
  "retried",
  "cancelled",
  "undone",
  "archived",
  "deleted",
  "budget-warned",
  "contest-picked",
  "contest-ended",
]
  .map((name) => `task.${name}`)
  .concat(["approval.requested", "approval.resolved", "turn.admitted", "turn.completed", "thread.deleted"])
  .concat(["notification.queued", "notification.tried", "notification.redelivered"]);

const STOPPED = ["paused", "failed", "claimed", "rejected"] as const;
const MOST_STOPPED = 100;

export function FactsProvider({ children }: { children: ReactNode }): ReactNode {
  const server = useResource("server", (signal) => api().server({ signal }));
  const state = useResource("state", readState, { on: isOfTask });
  const approvals = useResource(
    "approvals",
    async (signal) => (await api().listApprovals(undefined, { signal })).data.toSorted((a, b) => a.askedAt - b.askedAt),
    { on: mayAsk },
  );
  const stopped = useResource(
    "stopped",
    async (signal) => (await api().tasks.list({ state: STOPPED, limit: MOST_STOPPED }, { signal })).data,
    { on: isOfTask },
  );
  const position = state.data?.position;
  const isKnown = position !== undefined;
  useEffect(() => {
    if (!isKnown) return undefined;
    // The cursor is that of the first answer; what came later is told by events.
    return openFeed({ types: TYPES, after: position, onEvent: tell, onExpired: reloadAll });
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isKnown]);
  return <FactsContext value={{ server, state, approvals, stopped }}>{children}</FactsContext>;
}

async function readState(signal: AbortSignal): Promise<StateAnswer> {
  const state = await api().state({ signal });
  setServerTime(state.now);
  heardEvent(state.position);
  return state;
}
