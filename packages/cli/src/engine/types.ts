/** What a program sees of an engine in its own process. The words are those of `heddle/client`. */
import type { Decision } from "@heddle/protocol";
import type { AnswerInput, Failure, StartTurnInput, StreamedDelta, StreamedEvent, Usage } from "@heddle/protocol/http";

export interface OpenOptions {
  /** Where Heddle keeps everything; absent: `HEDDLE_HOME`, or `~/.heddle`. Made when missing. */
  readonly home?: string;
  /** The workspace of turns that name none; absent: the current folder. */
  readonly workspace?: string;
  /** Keys of config.toml that count before the file: `{ model: "…", model_providers: { mine: { base_url: "…" } } }`. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** `[profiles.NAME]` of config.toml. */
  readonly profile?: string;
  /** false: no config.toml is read, neither Heddle's nor Codex's. */
  readonly readsConfigFile?: boolean;
  /** Where keys of providers are looked up; absent: `process.env`. Commands of an agent never see these keys. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A line for the user of this program, such as a slow start. Absent: such lines are dropped. */
  readonly log?: (line: string) => void;
}

/** One object is enough: `{ input: "what does this project do?" }`. */
export type StartTurn = StartTurnInput & {
  /** The thread to go on with, which keeps its workspace, model and sandbox; absent: a new thread. */
  readonly thread?: string;
  /** Text as it is made, and output of running commands. Live only; what ends is also an event. */
  readonly onDelta?: (delta: StreamedDelta) => void;
  /** Aborting it interrupts the turn. */
  readonly signal?: AbortSignal;
};

/** An answer to a question with what it carries: answers, content, a part of the permissions that were asked for. */
export type Answer = AnswerInput;

export interface TurnResult {
  readonly threadId: string;
  readonly turnId: string;
  readonly status: "completed" | "failed" | "interrupted";
  /** The last whole message of the agent. */
  readonly message: string | undefined;
  /** Why it did not complete. */
  readonly failure: Failure | undefined;
  readonly usage: Usage;
  /** undefined: the price of the model is not known. */
  readonly costUsd: number | undefined;
  readonly durationMs: number;
}

/**
 * A turn that is under way. Iterating it gives its stored events from the first to the last, however late the iteration
 * begins and however often; leaving the loop does not stop the turn.
 */
export interface Turn extends AsyncIterable<StreamedEvent> {
  readonly threadId: string;
  readonly id: string;
  /** Answers a question of this turn (`approval.requested`). The first answer counts. */
  answer(approvalId: string, answer: Decision | Answer): Promise<void>;
  /** Adds input to the running turn; the agent reads it at the next safe point. */
  steer(input: StartTurnInput["input"]): Promise<void>;
  /** Resolves when the request is stored; the last event follows within seconds. */
  interrupt(reason?: string): Promise<void>;
  /** Waits for the end. A failed turn is a result; it rejects only when the end could not be stored. */
  result(): Promise<TurnResult>;
}

export interface EventsOptions {
  /** The `seq` to go on from; 0, the default, is the beginning. */
  readonly after?: number;
  /** true: go on with events as they come, until the signal is aborted. */
  readonly live?: boolean;
  readonly signal?: AbortSignal;
}

/** An open engine. Every refusal is a `HeddleError` with a `code`, and comes before anything is stored. */
export interface Heddle extends AsyncDisposable {
  readonly home: string;
  /** Resolves when the input is stored. */
  startTurn(turn: StartTurn): Promise<Turn>;
  /** Stored events of a thread, in order. */
  events(threadId: string, options?: EventsOptions): AsyncGenerator<StreamedEvent, void, void>;
  /** Answers a question of any thread, such as one of a process that was killed; its turn then continues here. */
  answerApproval(threadId: string, approvalId: string, answer: Decision | Answer): Promise<void>;
  /** Interrupts running turns, waits for their ends and closes the record. Calling it again does nothing. */
  close(): Promise<void>;
}
