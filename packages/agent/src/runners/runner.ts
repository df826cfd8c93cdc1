/**
 * A runner carries out one turn: Heddle's own loop, or another program. It writes no state itself: it records through
 * `io`, and the turn decides the terminal event.
 */
import type {
  ApprovalQuestion,
  Author,
  By,
  ClientContext,
  Envelope,
  EventBody,
  EventOf,
  EventType,
  Failure,
  InputPart,
  ItemDelta,
  NativeEnd,
  NoticeText,
  StoredAnswer,
  StoredEvent,
  TurnSettings,
  Usage,
} from "@heddle/protocol";
import type {
  EnvelopeMeters,
  McpServers,
  OngoingItem,
  ProtectedPathViolation,
  Sandbox,
  ThreadState,
  SandboxContext,
} from "@heddle/tools";
import type { RunnerCapabilities } from "./abilities.ts";
import type { TurnHops } from "../approvals/hop.ts";
import type { CarriedOver } from "../approvals/carried.ts";
import type { TurnHooks } from "../hooks/hooks.ts";
import type { Ahead } from "../turns/ahead.ts";
import type { StartWatch } from "../turns/start-watch.ts";
import type { TurnEnvelope } from "../turns/turn-envelope.ts";

export interface TurnRequest {
  readonly threadId: string;
  readonly turnId: string;
  readonly workspace: string;
  /** Of the thread: the door it was made at, and after a colon who made it there. */
  readonly origin: string;
  readonly settings: TurnSettings;
  /** The thread's past, inherited events included, up to and including this turn's admission. */
  readonly history: readonly StoredEvent[];
  readonly sandboxContext: TurnSandbox;
  readonly notices?: readonly NoticeText[];
  readonly watch?: StartWatch;
  readonly carried?: CarriedOver | undefined;
}

/** The sandbox of a turn, and what runs inside it. */
export interface TurnSandbox extends TurnEnvelope {
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
  readonly mcp?: McpServers | undefined;
  /**
   * A sandbox of another envelope around the same workspace; it lasts as long as this one. `visible`: folders that are seen
   * inside although what is around them is not.
   */
  widen(envelope: Envelope, visible?: readonly string[]): Promise<SandboxContext>;
  /** Closes such a sandbox with everything in it; returns the violations found there. */
  narrow(envelope: Envelope): Promise<readonly ProtectedPathViolation[]>;
  /**
   * Another envelope in place of this one, for what follows. Its sandbox is open before everything in this one ends, so
   * that a refusal by the host leaves the thread where it is.
   */
  change(envelope: Envelope): Promise<ChangedSandbox>;
}

export interface ChangedSandbox {
  /** In place of what the turn had; its ceiling and the envelopes it knows stay. */
  readonly sandboxContext: Omit<TurnSandbox, "ceiling" | "named">;
  /** Found in the sandbox that was left. */
  readonly violations: readonly ProtectedPathViolation[];
}

/**
 * What a runner may record; `underPolicy` enforces it at run time too. Admission, start and end belong to the turn,
 * questions to `ask`, hooks and hops to the policy.
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
  "agent.started",
  "agent.connected",
  "agent.ended",
] as const satisfies readonly EventType[];

export type RunnerEvent = EventOf<(typeof RUNNER_EVENTS)[number]>;

/** Rules for every runner, made by the turn (`turns/policy.ts`). Limits are enforced by `record`. */
export interface TurnPolicy {
  /**
   * For the runner to run at their points: before and after a call, at a prompt, around a compaction. Each run is
   * recorded.
   */
  readonly hooks: TurnHooks;
  /** The sandbox of the next call, and the way to a wider one. */
  readonly hops: TurnHops;
  /** What was done in the envelope, against its limits. */
  readonly meters: EnvelopeMeters;
  /** Keys of acts that are accepted for the whole thread. `ask` answers them and adds to them. */
  readonly remembered: ReadonlySet<string>;
  /** undefined: the thread has had a turn in this process before. */
  readonly sessionSource: "startup" | "resume" | undefined;
  /** When the agent wants to stop: why a Stop hook makes it continue; undefined: it may stop. */
  reasonToContinue(lastMessage: string | null): Promise<string | undefined>;
}

export interface TurnIo {
  readonly signal: AbortSignal;
  readonly policy: TurnPolicy;
  /**
   * In order and in one transaction; returns the events as stored, without secrets, once they are durable. Anything but
   * a `RunnerEvent` of this turn is refused with `policy.denied`.
   */
  record(events: readonly RunnerEvent[], author?: Author): Promise<readonly EventBody[]>;
  stream(delta: Omit<ItemDelta, "threadId" | "turnId">): void;
  /** Completes every open item with what it has streamed, except those that are followed. */
  closeOpenItems(): Promise<void>;
  /**
   * Records the end of a started item whenever it comes, at the latest with the turn. Returns what was recorded within
   * the turn; never rejects, because a failed record reaches the next one.
   */
  follow(itemId: string, ongoing: OngoingItem): Promise<readonly EventBody[]>;
  /** Cancelled when the turn stops, or by the signal. */
  ask(question: ApprovalQuestion, signal?: AbortSignal): Promise<StoredAnswer>;
  /** The client's answer to the call of its tool. */
  clientAnswer(itemId: string, signal: AbortSignal): Promise<EventOf<"tool.answered">>;
  /** Input since the last call, oldest first, for the agent at this safe point. */
  takeSteering(): Promise<readonly SteeringInput[]>;
  /** Settles when there is input that was not taken, or when the signal aborts. */
  steered(signal: AbortSignal): Promise<void>;
  /** Entries that were injected since the last call, oldest first; they are stored already. */
  takeInjected(): readonly (EventOf<"context.injected"> | EventOf<"context.added">)[];
  /** Messages have come for the thread since the last call, as of the last call of `takeSteering`. */
  takeArrived(): boolean;
  /** Changes of what the turn runs with, as of the last call of `takeSteering`, oldest first. */
  changes(): readonly EventOf<"turn.settings-changed">[];
  /** The version of the thread's last event; all events up to it were handled. */
  seenVersion(): Promise<number>;
  /** Reports the progress of a model request to the turn: it works ahead, and knows that bytes come. */
  readonly ahead?: () => Ahead;
}

/** Without the policy: for what the turn does itself, such as commands of the user. */
export type BareIo = Omit<TurnIo, "policy">;

export interface SteeringInput extends By, Pick<EventOf<"turn.steered">, "role" | "source"> {
  readonly input: readonly InputPart[];
  readonly context?: readonly ClientContext[] | undefined;
  readonly clientId?: string | undefined;
}

export interface Spent {
  readonly usage: Usage;
  readonly costUsd?: number;
}

export type TurnOutcome =
  /** `result`: what the agent of an outside turn leaves its envelope with. `native`: what an agent program said of its end. */
  | { readonly kind: "completed"; readonly spent: Spent; readonly result?: unknown; readonly native?: NativeEnd }
  | { readonly kind: "failed"; readonly failure: Failure; readonly spent: Spent }
  | { readonly kind: "interrupted"; readonly spent: Spent };

/** What is there of the program behind a runner, and what to do about what is not. */
export interface RunnerHealth {
  readonly isInstalled: boolean;
  readonly program?: string;
  readonly version?: string;
  /** As its own program says; Heddle reads none of its secrets. `notNeeded`: it has no login of its own. */
  readonly login: "loggedIn" | "loggedOut" | "unknown" | "notNeeded";
  readonly problems: readonly RunnerProblem[];
}

export interface RunnerProblem {
  readonly message: string;
  /** A command, or what to do. */
  readonly fix: string;
}

export interface Runner {
  readonly name: string;
  readonly capabilities: RunnerCapabilities;
  /** What is on this machine. Never rejects; a program that does not answer in time is a problem. */
  probe(signal: AbortSignal): Promise<RunnerHealth>;
  /**
   * Throws a typed error when such a turn could not be carried out; called before admission, and before a running turn
   * gets another model, of which facts are needed: `model.unknown`.
   */
  check(settings: TurnSettings, options?: { readonly mustKnowModel?: boolean }): Promise<void>;
  /** Loads what the first request needs while the sandbox opens. Only speed depends on it. */
  ahead?(settings: TurnSettings): Promise<void>;
  /** Runs one turn to its end. Settles soon after `io.signal` aborts. */
  run(turn: TurnRequest, io: TurnIo): Promise<TurnOutcome>;
}
