/** What the frame and the page Now stand on: asked for once, and again when an event says that it has changed. */
import type { Approval, ServerAnswer, StateAnswer, StreamedEvent, TaskSummary } from "@heddle/protocol/http";
import { createContext, useContext, useEffect, useRef, type ReactNode } from "react";
import { openFeed, tell } from "./feed.ts";
import { heardEvent, setServerTime } from "./link.ts";
import { mayAsk, reloadAll, useResource, type Resource } from "./resource.ts";
import { api } from "./session.ts";
import { createStore } from "./store.ts";
import type { Given } from "../words/questions.ts";

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
function isOfWait(event: StreamedEvent): boolean {
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

/** Answers that were heard of, by question, for whoever still shows it; the newest are kept. */
export const answers = createStore<ReadonlyMap<string, Given>>(new Map());
const MAX_ANSWERS = 100;

function hear(event: StreamedEvent): void {
  const { body, author } = event;
  if (body.type === "approval.resolved") {
    const kept = [...answers.get()].slice(-MAX_ANSWERS);
    answers.set(new Map([...kept, [body.approvalId, { decision: body.decision, author }]]));
  }
  tell(event);
}

const STOPPED = ["paused", "failed", "claimed", "rejected"] as const;
const MOST_STOPPED = 100;

export function FactsProvider({ children }: { children: ReactNode }): ReactNode {
  const server = useResource("server", (signal) => api().server({ signal }));
  const state = useResource("state", readState, { on: isOfTask, isFirst: true });
  const approvals = useResource(
    "approvals",
    async (signal) => (await api().listApprovals(undefined, { signal })).data.toSorted((a, b) => a.askedAt - b.askedAt),
    { on: isOfWait },
  );
  const stopped = useResource(
    "stopped",
    async (signal) => (await api().tasks.list({ state: STOPPED, limit: MOST_STOPPED }, { signal })).data,
    { on: isOfTask },
  );
  const position = state.data?.position;
  const isKnown = position !== undefined;
  const hasFailed = state.error !== undefined;
  const wasDeaf = useRef(false);
  useEffect(() => {
    if (!isKnown) {
      if (!hasFailed) return undefined;
      wasDeaf.current = true;
      mayAsk();
      return undefined;
    }
    // The cursor is that of the first answer; what came later is told by events.
    const close = openFeed({ types: TYPES, after: position, onEvent: hear, onExpired: startAgain });
    if (wasDeaf.current) reloadAll();
    wasDeaf.current = false;
    mayAsk();
    return close;
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isKnown, hasFailed && !isKnown]);
  return <FactsContext value={{ server, state, approvals, stopped }}>{children}</FactsContext>;
}

/** Where to listen from now on; what is shown is asked for after that. */
async function startAgain(): Promise<number> {
  const { position } = await api().state();
  reloadAll();
  return position;
}

async function readState(signal: AbortSignal): Promise<StateAnswer> {
  const state = await api().state({ signal });
  setServerTime(state.now);
  heardEvent(state.position);
  return state;
}
