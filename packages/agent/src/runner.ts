/**
 * A runner carries out one turn: Heddle's own loop, or another program behind the same doors.
 * It never writes state itself; it records through `io`, and the turn decides the terminal event.
 */
import type {
  ApprovalQuestion,
  Author,
  Decision,
  EventBody,
  Failure,
  InputPart,
  ItemDelta,
  StoredEvent,
  TurnSettings,
  Usage,
} from "@heddle/protocol";

export interface RunnerCapabilities {
  readonly canSteer: boolean;
  readonly canResume: boolean;
  readonly asksApproval: boolean;
}

export type RunnerHealth = { readonly kind: "ready" } | { readonly kind: "unavailable"; readonly failure: Failure };

export interface TurnRequest {
  readonly threadId: string;
  readonly turnId: string;
  /** Absolute. */
  readonly workspace: string;
  readonly input: readonly InputPart[];
  readonly settings: TurnSettings;
  /** The thread's events up to and including this turn's admission. */
  readonly history: readonly StoredEvent[];
}

/** What a runner may record; admission and the terminal event belong to the turn. */
export type RunnerEvent = Exclude<
  EventBody,
  { type: "thread.created" | "turn.admitted" | "turn.completed" | "approval.requested" | "approval.resolved" }
>;

export interface TurnIo {
  readonly signal: AbortSignal;
  /** Durable, in order, in one transaction, before it resolves. */
  record(events: readonly RunnerEvent[], author?: Author): Promise<void>;
  /** Live only. */
  stream(delta: Omit<ItemDelta, "threadId" | "turnId">): void;
  ask(question: ApprovalQuestion): Promise<Decision>;
  /** Input that arrived since the last call, oldest first; taken at a safe point. */
  takeSteering(): Promise<readonly (readonly InputPart[])[]>;
}

export type TurnOutcome =
  | { readonly kind: "completed"; readonly usage: Usage; readonly costUsd?: number }
  | { readonly kind: "failed"; readonly failure: Failure; readonly usage: Usage; readonly costUsd?: number }
  | { readonly kind: "interrupted"; readonly failure?: Failure; readonly usage: Usage; readonly costUsd?: number };

export interface Runner {
  readonly name: string;
  readonly capabilities: RunnerCapabilities;
  probe(signal: AbortSignal): Promise<RunnerHealth>;
  /** Runs one turn to its end. Settles soon after io.signal aborts. */
  run(turn: TurnRequest, io: TurnIo): Promise<TurnOutcome>;
}
