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
  EventType,
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
import type { TurnHops } from "../approvals/hop.ts";
import type { CarriedOver } from "../approvals/carried.ts";
import type { TurnHooks } from "../hooks/hooks.ts";
import type { Ahead } from "../turns/ahead.ts";
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

/**
 * What a runner may record; `underPolicy` keeps to it at run time too. Admission, start and end belong to the turn, questions
 * to `ask`, hooks and hops to the policy.
 */
export const RUNNER_EVENTS = [
  "sandbox.opened",
  "context.loaded",
  "context.added",
  "context.compacted",
  "context.left-out",
  "item.started",
  "item.completed",
  "model.requested",
  "model.retried",
  "model.responded",
  "tool.intended",
  "tool.settled",
  "mcp.listed",
  "path.violated",
] as const satisfies readonly EventType[];

export type RunnerEvent = EventOf<(typeof RUNNER_EVENTS)[number]>;

/** Rules that every runner keeps; made by the turn (`turns/policy.ts`). Limits are kept by `record` and need no asking. */
export interface TurnPolicy {
  /** To be asked at their points: before and after a call, at a prompt, around a compaction. Each run is recorded. */
  readonly hooks: TurnHooks;
  /** The sandbox of the next call, and the way to a wider one. */
  readonly hops: TurnHops;
  /** Keys of acts that are accepted for the whole thread. `ask` answers them and adds to them. */
  readonly remembered: ReadonlySet<string>;
  /** How the thread comes to this process; undefined: it has been here before. */
  readonly sessionSource: "startup" | "resume" | undefined;
  /** When the agent wants to stop: why a Stop hook sends it back to work; undefined: it may stop. */
  reasonToGoOn(lastMessage: string | null): Promise<string | undefined>;
}

export interface TurnIo {
  readonly signal: AbortSignal;
  readonly policy: TurnPolicy;
  /**
   * In order and in one transaction; durable as each event's type demands before it resolves, with the events as they are
   * stored: without secrets. Anything but a `RunnerEvent` of this turn is refused with `policy.denied`.
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
  /** Tells the turn how a request to a model comes along, so that it can work ahead. Only speed depends on it. */
  readonly ahead?: () => Ahead;
}

/** Before the policy: for what the turn does itself, such as commands of the user. */
export type BareIo = Omit<TurnIo, "policy">;

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
  /** Loads what the first request needs while the sandbox is opened. Only speed depends on it. */
  ahead?(settings: TurnSettings): Promise<void>;
  /** Runs one turn to its end. Settles soon after io.signal aborts. */
  run(turn: TurnRequest, io: TurnIo): Promise<TurnOutcome>;
}
