/** What every door gets: the calls of an open Heddle, and what it takes to open one. `open.ts` is the only maker. */
import type { readStoredSettings } from "./settings/stored.ts";
import type { Journal, Redactor, ThreadRow } from "@heddle/journal";
import type { ProviderConfig } from "@heddle/models";
import type { McpAccounts } from "@heddle/models/accounts";
import type {
  Author,
  ErrorCode,
  HookConfig,
  InputPart,
  McpServerConfig,
  ApprovalAnswer,
  NoticeText,
  TurnSettings,
} from "@heddle/protocol";
import type { SandboxLimits } from "@heddle/tools";
import type { ThreadBeginning } from "./threads/create-thread.ts";
import type { IdleLimits } from "./sandboxes/idle-places.ts";
import type { DeltaListener } from "./turns/live.ts";
import type { Sample, SampleQuestion } from "./side-requests/sample.ts";
import type { Runner } from "./runners/runner.ts";
import type { SkillChoices } from "./context/skills.ts";
import type { StartWatch } from "./turns/start-watch.ts";
import type { ArchiveThread, DeleteThread, ForkThread, NameThread, ThreadSelector } from "./threads/threads.ts";
import type { TerminalEvent } from "./turns/terminal.ts";

export function isThreadId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

export interface HeddleOptions {
  /** Absolute; made when missing. */
  readonly home: string;
  readonly providers: readonly ProviderConfig[];
  /** Where provider keys come from; never handed to a command. */
  readonly env: NodeJS.ProcessEnv;
  readonly sandboxBackend?: "auto" | "namespaces" | "bwrap";
  /** What commands of a thread may use together; absent: the defaults, cut to what the host has left. */
  readonly sandboxLimits?: SandboxLimits | undefined;
  /** How many sandboxes of threads that nobody works in are kept open, and how long; absent: a few, for minutes. */
  readonly idleSandboxes?: IdleLimits | undefined;
  /** Nobody can be asked: questions are answered by policy, and nothing outlives its turn. */
  readonly isUnattended: boolean;
  /** So long a question waits for an answer before policy declines it; absent: for ever. */
  readonly approvalTimeoutMs?: number | undefined;
  /** A start that takes longer until its first request is reported; five seconds when absent. */
  readonly slowStartMs?: number | undefined;
  /** So long leases hold without being renewed; twelve seconds when absent. */
  readonly leaseMs?: number | undefined;
  /** Carries out turns in place of Heddle's own loop. */
  readonly runner?: Runner | undefined;
  /** From Heddle's own configuration, never from a workspace. */
  readonly hooks?: readonly HookConfig[];
  /** Skills besides those in the usual folders, and which of all are off. */
  readonly skills?: SkillChoices | undefined;
  /** Absolute paths that do not exist for the agent, besides the home. */
  readonly masked?: readonly string[];
  /** From the user's own configuration, never from a workspace. */
  readonly mcpServers?: readonly McpServerConfig[];
  /** Titles of chats, beside their turns; absent: none. `model`: what makes them, the thread's own when absent. */
  readonly background?: { readonly model?: string | undefined } | undefined;
  /** How often protected paths are looked after while commands go on after their turn; absent: every two seconds. */
  readonly sweepEveryMs?: number | undefined;
  /** How long a client may take to carry out a tool of its own; absent: five minutes. */
  readonly clientToolMs?: number | undefined;
  /** Told, in a line, what a person who runs this should know and no caller hears of. */
  readonly log?: ((line: string) => void) | undefined;
  /** Shared with whoever stores or renews credentials while this is open, so that their secrets are never stored here. */
  readonly redactor?: Redactor | undefined;
}

export interface NewThread {
  /** Absolute, existing folder. */
  readonly workspace: string;
  /** The door it came through. */
  readonly origin: string;
  readonly title?: string;
  /** To be deleted when the run is over; the next Heddle that opens does it when this one cannot. */
  readonly isEphemeral?: true;
}

export interface StartTurn {
  /** An existing thread, or what a new one begins with; a refused turn leaves no new thread or fork behind. */
  readonly thread: string | NewThread | { readonly fork: ForkThread };
  /** Absolute, existing folder. An existing thread goes on there from here on, which is recorded; absent: where it was. */
  readonly workspace?: string;
  readonly input: readonly InputPart[];
  readonly settings: TurnSettings;
  /** Keys of the settings that count for this turn alone. */
  readonly once?: readonly string[] | undefined;
  readonly clientId?: string;
  /** Of input that waited (`queue.ts`): the turn begins under the id it waited with. */
  readonly turnId?: string;
  /** `review`: what is asked is to judge, and an answer as findings is shown as text. `goal`: no input but the goal. */
  readonly task?: "review" | "goal";
  /** What is judged, in a few words. */
  readonly subject?: string;
  /** Recorded when the turn begins: what its user must know about how it came to be. */
  readonly notices?: readonly NoticeText[];
  /** Watched since before it was asked for; absent: from here on. The turn closes it. */
  readonly watch?: StartWatch;
}

export interface RunShell {
  readonly threadId: string;
  /** A line for the shell. */
  readonly command: string;
  /** Where it runs: in the thread's sandbox. */
  readonly settings: TurnSettings;
  /** An hour when absent, and at most. */
  readonly timeoutMs?: number;
}

/** A command that outlived its call. */
export interface Terminal {
  readonly processId: string;
  /** Of the item that shows it; absent: its call has left no record. */
  readonly itemId: string | undefined;
  readonly command: string;
  readonly cwd: string;
  /** Of the process that carries it, as the host numbers it. */
  readonly pid: number;
  /** Something can still be written to it. */
  readonly hasInput: boolean;
}

/** A command of a thread as it is at this moment. */
export interface RunningCommand extends Pick<Terminal, "processId" | "pid" | "hasInput"> {
  /** Items of the calls that wait for it; none: it runs in the background. */
  readonly awaitedBy: readonly string[];
}

export interface TurnHandle {
  readonly threadId: string;
  readonly turnId: string;
  /** Version of the admission; tail the thread after the one before it to see the whole turn. */
  readonly admittedVersion: number;
  /** The terminal event, once it is durable. Rejects only when it could not be stored. */
  readonly done: Promise<TerminalEvent>;
}

/** The turn a command of the user is part of. */
export type ShellHandle = Pick<TurnHandle, "turnId" | "done">;

export interface InterruptReason {
  readonly code: Extract<ErrorCode, "turn.interrupted" | "turn.timeout">;
  readonly message: string;
}

export interface GivenAnswer extends ApprovalAnswer {
  readonly threadId: string;
  readonly approvalId: string;
}

/** What somebody can ask an open Heddle for; all of it goes on record as theirs. */
export interface Acts {
  createThread(thread: NewThread, beginning?: ThreadBeginning): Promise<string>;
  /** A new thread with the past of another, up to its last ended turn or to `atTurn`; answers its id. */
  forkThread(fork: ForkThread): Promise<string>;
  nameThread(name: NameThread): Promise<void>;
  /** Puts a thread away or brings it back. What still runs in one that is put away is ended, unless a turn runs there. */
  archiveThread(thread: ArchiveThread): Promise<void>;
  /**
   * Removes what a thread said, its spilled outputs and its quarantine; that it was there stays on record. Refused with
   * `turn.active` while a turn runs, and with `thread.has-forks`, naming them, while a fork has its past there.
   */
  deleteThread(thread: DeleteThread): Promise<void>;
  /** Resolves when the input is durable. Every refusal is typed and comes before anything is written. */
  startTurn(start: StartTurn): Promise<TurnHandle>;
  /** Makes the context of a thread smaller, as a turn without input; with the settings of its last turn unless told otherwise. */
  compact(threadId: string, settings?: TurnSettings): Promise<TurnHandle>;
  /** Runs a command of the user, as a turn of its own or beside the one that runs here; the model hears of it next. */
  runShell(shell: RunShell): Promise<ShellHandle>;
  /** Adds input to a running turn of any process; it is told to the agent at the next safe point. */
  steer(turnId: string, input: readonly InputPart[]): Promise<void>;
  interrupt(turnId: string, reason: InterruptReason): Promise<void>;
  /** Answers a question of any kind; the first answer stands. */
  answer(given: GivenAnswer): Promise<void>;
}

export interface Heddle extends AsyncDisposable {
  readonly journal: Journal;
  /** How many turns of dead processes were closed when this one opened. */
  readonly recoveredTurns: number;
  /** How many turns have no terminal event because the store could not take it; the next one that opens closes them. */
  readonly unstoredEnds: number;
  /** The calls that change something. There is no other way to them, so nobody can forget to say who asks. */
  as(by: Author): Acts;
  /**
   * The thread to go on with: an exact id, a beginning of one (8 characters or more), an exact name, or the last active one.
   * `thread.not-found` when nothing fits, `thread.ambiguous` with the candidates when more than one does.
   */
  findThread(selector: ThreadSelector): Promise<ThreadRow>;
  /**
   * What the thread says about its next turn, the folder it runs in included. With a client id: as it was before the turn of
   * that id, so that a repeated request gets the same settings.
   */
  storedSettings(threadId: string, beforeClientId?: string): ReturnType<typeof readStoredSettings>;
  /** With what the thread's last turn ran, its ancestors' included; undefined when there has been none. */
  lastSettings(threadId: string): Promise<TurnSettings | undefined>;
  /** Commands of the thread that are still running here. */
  terminals(threadId: string): Promise<readonly Terminal[]>;
  /** The same without a look at the record, with who waits for them. */
  runningCommands(threadId: string): readonly RunningCommand[];
  /** Ends one of them, or all; answers how many. */
  endTerminals(threadId: string, processId?: string): Promise<number>;
  /**
   * Closes the thread's sandbox with everything that runs in it, background commands and what they started included. false:
   * a turn runs there, and nothing was ended.
   */
  endCommands(threadId: string): Promise<boolean>;
  /** Ends the input of one of them, or of all that have one; answers how many. */
  endInputs(threadId: string, processId?: string): Promise<number>;
  /**
   * For a server that stops: a turn it runs is interrupted, or `left` as it is when it only waits for an answer, so that the
   * next server goes on with it; `done` of its handle rejects with `turn.parked` then. `elsewhere`: it is not run here.
   */
  letGo(turnId: string, reason: InterruptReason): Promise<"left" | "ending" | "elsewhere">;
  onDelta(threadId: string, listener: DeltaListener): Disposable;
  /** A few sentences about a thread, made now and not stored; undefined when none could be had. */
  summarise(threadId: string): Promise<string | undefined>;
  /**
   * One question to the model of an idle thread, with its context and beside its conversation; nothing of it is stored but
   * what it took. Whoever asks ends it, by the signal, before this closes.
   */
  sample(question: SampleQuestion, signal: AbortSignal): Promise<Sample>;
  /** Logins at MCP servers; closed with this. */
  mcpLogins(): Promise<McpAccounts>;
}
