/** The calls of an open Heddle, for every door, and its options. `open.ts` is the only implementation. */
import type { readStoredSettings } from "./settings/stored.ts";
import type { Journal, Redactor, ThreadRow, TicketWriter } from "@heddle/journal";
import type { CollectRule } from "@heddle/journal/blobs";
import type { ProviderConfig } from "@heddle/models";
import type { McpAccounts } from "@heddle/models/accounts";
import type {
  Author,
  ClientContext,
  EnvironmentPolicy,
  ErrorCode,
  HookConfig,
  InputPart,
  InputRole,
  InputSource,
  McpServerConfig,
  ApprovalAnswer,
  NoticeText,
  ThreadParent,
  TurnSettings,
} from "@heddle/protocol";
import type { Member, MemberOptions } from "./recovery/membership.ts";
import type { SandboxLimits } from "@heddle/tools";
import type { ThreadBeginning } from "./threads/create-thread.ts";
import type { IdleLimits } from "./sandboxes/idle-sandboxes.ts";
import type { ThreadServers } from "./mcp/thread-servers.ts";
import type { MessageActs } from "./messages/acts.ts";
import type { MessageRules } from "./messages/rules.ts";
import type { DeltaListener } from "./turns/live.ts";
import type { Steering, TurnChange } from "./turns/sent.ts";
import type { Sample, SampleQuestion } from "./side-requests/sample.ts";
import type { AttachThread } from "./runners/attached.ts";
import type { OutsideActs } from "./runners/outside.ts";
import type { RunnerConfigs } from "./runners/config.ts";
import type { Runner } from "./runners/runner.ts";
import type { SkillChoices } from "./context/skills.ts";
import type { StartWatch } from "./turns/start-watch.ts";
import type { GateRun, RunGate } from "./approvals/gates.ts";
import type { HopThread, ThreadHop } from "./approvals/thread-hop.ts";
import type { ArchiveThread, DeleteThread, ForkThread, NameThread, ThreadSelector } from "./threads/threads.ts";
import type { DayLimits } from "./turns/day-limits.ts";
import type { TerminalEvent } from "./turns/terminal.ts";

export function isThreadId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

export interface HeddleOptions {
  readonly home: string;
  /** Where the record is kept, as `postgres://…`; absent: in the home. */
  readonly store?: string | undefined;
  readonly providers: readonly ProviderConfig[];
  readonly env: NodeJS.ProcessEnv;
  readonly sandboxBackend?: "auto" | "namespaces" | "bwrap";
  /** For all commands of a thread together; absent: the defaults, cut to what the host has left. */
  readonly sandboxLimits?: SandboxLimits | undefined;
  /** How many sandboxes of idle threads stay open, and how long; absent: a few, for minutes. */
  readonly idleSandboxes?: IdleLimits | undefined;
  /** What all threads of the home may use in a day; absent: no limit. */
  readonly dayLimits?: DayLimits | undefined;
  /** No client is connected: policy answers questions, and nothing outlives its turn. */
  readonly isUnattended: boolean;
  /** Policy declines a question after this long; absent: never. */
  readonly approvalTimeoutMs?: number | undefined;
  /** A slower start is reported; absent: five seconds until its first request. */
  readonly slowStartMs?: number | undefined;
  /** How long leases last without renewal; absent: twelve seconds. */
  readonly leaseMs?: number | undefined;
  /** In place of Heddle's own loop. */
  readonly runner?: Runner | undefined;
  /** Agent programs, by name, as the owner wants them. */
  readonly runners?: RunnerConfigs | undefined;
  /** From Heddle's own configuration, never from a workspace. */
  readonly hooks?: readonly HookConfig[];
  /** Skills besides those in the usual folders, and which are disabled. */
  readonly skills?: SkillChoices | undefined;
  /** Codex's home, where its configuration is used: the owner's guide may be there. */
  readonly codexHome?: string | undefined;
  /** Absolute paths that do not exist for the agent, besides the home. */
  readonly masked?: readonly string[];
  /** From the user's own configuration, never from a workspace. */
  readonly mcpServers?: readonly McpServerConfig[];
  /** Threads may start child threads; absent: they may not. */
  readonly childThreads?: ChildLimits | undefined;
  /** Agents may search the evidence and note in it; absent: no. */
  readonly hasEvidenceTools?: boolean | undefined;
  /** Which whole outputs of commands the home keeps; absent: 2 GiB of them, of any age. */
  readonly outputRule?: CollectRule | undefined;
  /** Messages between agents; absent: no tools for them, and none starts a turn. */
  readonly messages?: MessageRules | undefined;
  /** Titles of chats; absent: none. `model`: absent: the thread's own. */
  readonly background?: { readonly model?: string | undefined } | undefined;
  /** How often protected paths are checked while commands run on after their turn; absent: every two seconds. */
  readonly sweepEveryMs?: number | undefined;
  /** How long a client may take to carry out its own tool; absent: five minutes. */
  readonly clientToolMs?: number | undefined;
  /** The longest that an outside agent may call nothing before its session ends; absent: half an hour. */
  readonly sessionIdleMs?: number | undefined;
  /** The queue of a store that machines share; absent: what is sent there is sent again by a worker. */
  readonly tickets?: TicketWriter | undefined;
  /** It joins the store as a worker of a team; absent: it works by itself. */
  readonly member?: MemberOptions | undefined;
  /** Gets lines for the operator that no caller receives. */
  readonly log?: ((line: string) => void) | undefined;
  /** Shared with whatever stores or renews credentials, so that their secrets are never stored here. */
  readonly redactor?: Redactor | undefined;
}

export interface ChildLimits {
  /** 1: a child starts none. */
  readonly maxDepth: number;
  /** Of one thread, until it closes them. */
  readonly maxOpen: number;
}

export interface NewThread {
  readonly workspace: string;
  readonly origin: string;
  readonly title?: string;
  /** Deleted when the run is over, by this process or by the next one that opens. */
  readonly isEphemeral?: true;
  /** Started by a call in that thread; its turns are allowed no more than is said there. */
  readonly parent?: ThreadParent;
}

export interface StartTurn {
  /** An existing thread, or what a new one begins with; a refused turn leaves no new thread or fork. */
  readonly thread: string | NewThread | { readonly fork: ForkThread };
  /**
   * Absolute, existing folder. An existing thread moves there, which is recorded; absent: where the thread's next turn
   * runs.
   */
  readonly workspace?: string;
  readonly input: readonly InputPart[];
  /** What the input is to the agent; absent: a command. */
  readonly role?: InputRole | undefined;
  /** The thread whose agent sends it; absent: the caller does. */
  readonly source?: InputSource | undefined;
  /** Of the task `message`: those that start it. */
  readonly messages?: readonly string[] | undefined;
  /** By which others know the agent of the thread from here on. */
  readonly agentName?: string | undefined;
  /** Told before the input. */
  readonly context?: readonly ClientContext[] | undefined;
  readonly settings: TurnSettings;
  /** Keys of settings for this turn alone. */
  readonly once?: readonly string[] | undefined;
  /** Settings that the thread keeps, under the keys of the journal, although turns do not: its ceiling. */
  readonly keep?: Readonly<Record<string, unknown>> | undefined;
  readonly clientId?: string;
  /** The trace that the turn is part of, as W3C Trace Context has it. */
  readonly traceparent?: string | undefined;
  /** Of queued input (`queue.ts`): the turn begins under the id it was queued with. */
  readonly turnId?: string;
  /** The version it was queued with: input that was changed meanwhile does not begin as it was. */
  readonly queuedVersion?: number;
  /** `review`: an answer as findings is shown as text. `goal`: no input but the goal. `message`: none but `messages`. */
  readonly task?: "review" | "goal" | "message";
  readonly subject?: string;
  /** Recorded when the turn begins. */
  readonly notices?: readonly NoticeText[];
  /** Begun before the turn was asked for; absent: begins here. The turn closes it. */
  readonly watch?: StartWatch;
}

export interface RunShell {
  readonly threadId: string;
  readonly command: string;
  readonly settings: TurnSettings;
  /** At most, and when absent: an hour. */
  readonly timeoutMs?: number;
}

export interface Terminal {
  readonly processId: string;
  /** The item that shows it; undefined: its call has left no record. */
  readonly itemId: string | undefined;
  readonly command: string;
  readonly cwd: string;
  readonly pid: number;
  readonly hasInput: boolean;
}

export interface RunningCommand extends Pick<Terminal, "processId" | "command" | "pid" | "hasInput"> {
  /** Items of the calls that wait for it; none: it runs in the background. */
  readonly awaitedBy: readonly string[];
  /** It runs in another sandbox than that of its thread: a wider one, or none. */
  readonly isBeyond: boolean;
}

export interface TurnHandle {
  readonly threadId: string;
  readonly turnId: string;
  /** Version of the admission: tail the thread after the version before it to see the whole turn. */
  readonly admittedVersion: number;
  /** The terminal event, once it is durable. Rejects only when it could not be stored. */
  readonly done: Promise<TerminalEvent>;
}

/** The turn that a command of the user is part of. */
export type ShellHandle = Pick<TurnHandle, "turnId" | "done">;

export interface InterruptReason {
  readonly code: Extract<ErrorCode, "turn.interrupted" | "turn.timeout">;
  readonly message: string;
}

export interface GivenAnswer extends ApprovalAnswer {
  readonly threadId: string;
  readonly approvalId: string;
}

/** Calls that change something, all recorded with their author. */
export interface Acts {
  createThread(thread: NewThread, beginning?: ThreadBeginning): Promise<string>;
  /** A new thread with the past of another, up to its last ended turn or as the fork says; returns its id. */
  forkThread(fork: ForkThread): Promise<string>;
  nameThread(name: NameThread): Promise<void>;
  /** Archives a thread or restores it. What still runs in an archived one is ended, unless a turn runs there. */
  archiveThread(thread: ArchiveThread): Promise<void>;
  /**
   * Removes the content of a thread and of its children, spilled outputs and quarantine; that they existed stays on record. Refused
   * with `turn.active` while a turn runs, and with `thread.has-forks`, naming them, while a fork has its past there.
   */
  deleteThread(thread: DeleteThread): Promise<void>;
  /**
   * Takes an idle thread into another envelope by name, or back into the one before. Durable when it resolves; a refusal
   * is typed and recorded. `hop.busy`: a turn runs.
   */
  hopThread(hop: HopThread): Promise<ThreadHop>;
  /**
   * Looks at the guards of a gate in the envelope of an idle thread. Durable when it resolves, passed or refused. `gate.unknown`:
   * neither the user nor the project has one of the name; `turn.active`: a turn runs.
   */
  runGate(run: RunGate): Promise<GateRun>;
  /** Resolves when the input is durable. Every refusal is typed and comes before anything is written. */
  startTurn(start: StartTurn): Promise<TurnHandle>;
  /** Makes the context of a thread smaller, as a turn without input; absent settings: those of its last turn. */
  compact(threadId: string, settings?: TurnSettings): Promise<TurnHandle>;
  /**
   * Runs a command of the user, as a turn of its own or beside the one that runs here; the model sees it with its next
   * request.
   */
  runShell(shell: RunShell): Promise<ShellHandle>;
  /**
   * Adds input to a running turn of any process; the agent sees it at the next safe point. The same client id adds once.
   * `runner.unsupported`: its agent takes none.
   */
  steer(
    turnId: string,
    input: readonly InputPart[],
    said?: Pick<Steering, "clientId" | "context" | "role" | "source">,
  ): Promise<void>;
  /** How a running turn asks its model from the next request on. `turn.not-found`: it has ended. */
  changeTurn(turnId: string, change: TurnChange): Promise<void>;
  interrupt(turnId: string, reason: InterruptReason): Promise<void>;
  /** Answers a question of any kind; the first answer wins. */
  answer(given: GivenAnswer): Promise<void>;
  /** For a caller that is the agent of its turns itself. */
  outside(): Promise<OutsideActs>;
  /**
   * A person takes an idle thread over in a terminal, in the own interface of its agent's program; the turn ends with that.
   * `runner.unsupported`: there is none. `ceiling.exceeded`: that is outside the sandbox, and above what the thread allows.
   */
  attach(thread: AttachThread): Promise<TurnHandle>;
  /** Names of agents, and messages to them. */
  messages(): Promise<MessageActs>;
}

export interface Heddle extends AsyncDisposable {
  readonly journal: Journal;
  readonly recoveredTurns: number;
  /** Set when it has joined its store as a worker. */
  readonly member: Member | undefined;
  /** Threads may start child threads. */
  readonly mayStartThreads: boolean;
  /** The owner's rules for messages between agents. */
  readonly messageRules: MessageRules;
  /** Turns without a terminal event because the store could not take it; the next Heddle that opens closes them. */
  readonly unstoredTurnEnds: number;
  /** The only way to calls that change something, so that none is without an author. */
  as(by: Author): Acts;
  /**
   * By an exact id, a prefix of one (8 characters or more), an exact name, or the last active one. `thread.not-found`
   * when nothing matches, `thread.ambiguous` with the candidates when more than one does.
   */
  findThread(selector: ThreadSelector): Promise<ThreadRow>;
  /**
   * What the thread says about its next turn, the folder it runs in included. With a client id: as it was before the turn of
   * that id, so that a repeated request gets the same settings.
   */
  storedSettings(threadId: string, beforeClientId?: string): ReturnType<typeof readStoredSettings>;
  /** Of the thread's last turn, inherited ones included; undefined when there has been none. */
  lastSettings(threadId: string): Promise<TurnSettings | undefined>;
  /** Threads that have an open sandbox in this process. */
  openSandboxes(): number;
  terminals(threadId: string): Promise<readonly Terminal[]>;
  /** The same without reading the journal, with the calls that wait for them. */
  runningCommands(threadId: string): readonly RunningCommand[];
  endTerminals(threadId: string, processId?: string): Promise<number>;
  /** Closes the thread's sandbox with everything that runs in it. false: a turn runs there, and nothing was ended. */
  endCommands(threadId: string): Promise<boolean>;
  endInputs(threadId: string, processId?: string): Promise<number>;
  /** Text for the input of a command that runs here. `waits`: it does not read now; `closed`: it has no input. */
  writeInput(threadId: string, processId: string, text: string): Promise<"sent" | "waits" | "closed" | "gone">;
  /**
   * For a server that stops: interrupts a turn it runs, or leaves it to the next server when it only waits for an
   * answer; `done` of its handle then rejects with `turn.parked`. `elsewhere`: it does not run here.
   */
  releaseTurn(turnId: string, reason: InterruptReason): Promise<"left" | "ending" | "elsewhere">;
  readonly mcp: ThreadServers;
  /** The environment of commands under a policy; what this process keeps secret is in none. */
  environmentOf(policy: EnvironmentPolicy): Record<string, string>;
  onDelta(threadId: string, listener: DeltaListener): Disposable;
  /** Called with every byte that a model or a command sends, also with those that make no delta. */
  onActivity(threadId: string, listener: () => void): Disposable;
  /** A few sentences about a thread, made now and not stored; undefined when that failed. */
  summarise(threadId: string): Promise<string | undefined>;
  /**
   * One request to the model of an idle thread, with its context and outside its conversation; only its usage is
   * stored. The caller ends it, by the signal, before this closes.
   */
  sample(question: SampleQuestion, signal: AbortSignal): Promise<Sample>;
  mcpLogins(): Promise<McpAccounts>;
}
