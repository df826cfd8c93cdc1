/**
 * A runner carries out one turn: Heddle's own loop, or another program behind the same doors.
 * It writes no state itself: it records through `io`, and the turn decides the terminal event.
 */
import type {
  ApprovalQuestion,
  Author,
  By,
  Envelope,
  EventBody,
  EventOf,
  Failure,
  InputPart,
  ItemDelta,
  NoticeText,
  StoredAnswer,
  StoredEvent,
  TurnSettings,
  Usage,
} from "@heddle/protocol";
import type { McpServers, OngoingItem, ProtectedPathViolation, Sandbox, ThreadState, Walls } from "@heddle/tools";
import type { CarriedOver } from "../approvals/parked.ts";
import type { StartWatch } from "../turns/start-watch.ts";

export interface TurnRequest {
  readonly threadId: string;
  readonly turnId: string;
  /** Absolute. */
  readonly workspace: string;
  readonly settings: TurnSettings;
  /** The thread's past, that of its ancestors included, up to and including this turn's admission. */
  readonly history: readonly StoredEvent[];
  readonly place: TurnPlace;
  /** Recorded when the turn begins. */
  readonly notices?: readonly NoticeText[];
  /** Watched until its first request. */
  readonly watch?: StartWatch;
  /** Of a turn that another process began. */
  readonly carried?: CarriedOver | undefined;
}

/** The walls around a turn, and what lives inside them. */
export interface TurnPlace {
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
  /** Absent: none is configured. */
  readonly mcp?: McpServers;
  /** Walls of another envelope around the same workspace; they last as long as the place. */
  widen(envelope: Envelope): Promise<Walls>;
  /** Closes such walls, with everything that runs behind them; answers what was found to be undone there. */
  narrow(envelope: Envelope): Promise<readonly ProtectedPathViolation[]>;
}

/** What a runner may record; admission, start and end belong to the turn, questions to `ask`. */
export type RunnerEvent = Exclude<
  EventBody,
  {
    type:
      | "thread.created"
      | "thread.moved"
      | "thread.named"
      | "thread.archived"
      | "thread.settings-changed"
      | "thread.metadata-changed"
      | "thread.goal-changed"
      | "thread.tools-declared"
      | "thread.reverted"
      | "context.injected"
      | "turn.queued"
      | "turn.dequeued"
      | "background.ran"
      | "client.intended"
      | "client.settled"
      | "thread.deleted"
      | "turn.admitted"
      | "turn.started"
      | "turn.completed"
      | "turn.steered"
      | "turn.interrupt-requested"
      | "turn.resumed"
      | "tool.answered"
      | "approval.requested"
      | "approval.resolved";
  }
>;

export interface TurnIo {
  readonly signal: AbortSignal;
  /**
   * In order and in one transaction; durable as each event's type demands before it resolves, with the events as they are
   * stored: without secrets.
   */
  record(events: readonly RunnerEvent[], author?: Author): Promise<readonly EventBody[]>;
  /** Live only. */
  stream(delta: Omit<ItemDelta, "threadId" | "turnId">): void;
  /** Completes every item still open, with what it has streamed so far; those that are followed go on. */
  closeOpenItems(): Promise<void>;
  /**
   * Records the end of a started item whenever it comes, at the latest with the turn. Resolves with what was recorded
   * when it ended within the turn; never rejects, because a record that fails reaches the next one.
   */
  follow(itemId: string, ongoing: OngoingItem): Promise<readonly EventBody[]>;
  /** The question is taken back when the turn is stopped, or by the signal. */
  ask(question: ApprovalQuestion, signal?: AbortSignal): Promise<StoredAnswer>;
  /** What a client says to the call of its tool; whoever waits gives up by the signal. */
  clientAnswer(itemId: string, signal: AbortSignal): Promise<EventOf<"tool.answered">>;
  /** Input that arrived since the last call, oldest first; to be told to the agent at this safe point. */
  takeSteering(): Promise<readonly SteeringInput[]>;
  /** What was put into the conversation since the last call, oldest first; it is stored already. */
  takeInjected(): readonly (EventOf<"context.injected"> | EventOf<"context.added">)[];
  /** The version of the thread's last event; everything up to there has been looked at. */
  seenVersion(): Promise<number>;
  /** The model is about to call a tool: what others can do meanwhile is begun. */
  isCalling(): void;
  /** The model has been awaited for a while: time for what will be needed and need not be done before. */
  hasTime(): void;
}

export interface SteeringInput extends By {
  readonly input: readonly InputPart[];
  readonly clientId: string | undefined;
}

export interface Spent {
  readonly usage: Usage;
  /** Absent: not known. */
  readonly costUsd?: number;
}

export type TurnOutcome =
  | { readonly kind: "completed"; readonly spent: Spent }
  | { readonly kind: "failed"; readonly failure: Failure; readonly spent: Spent }
  | { readonly kind: "interrupted"; readonly spent: Spent };

export interface Runner {
  readonly name: string;
  /** Throws a typed error when such a turn could not be carried out; called before the turn is admitted. */
  check(settings: TurnSettings): Promise<void>;
  /** Loads what the first request needs, while the sandbox comes alive. Changes nothing. */
  warm?(settings: TurnSettings): Promise<void>;
  /** Runs one turn to its end. Settles soon after io.signal aborts. */
  run(turn: TurnRequest, io: TurnIo): Promise<TurnOutcome>;
}
