/**
 * What a tool is. One tool per file in `builtin/`; only `dispatch` may call `run`, and the package's index exports no
 * tool.
 */
import type {
  ApprovalAnswer,
  ApprovalQuestion,
  Effect,
  Envelope,
  Failure,
  HopScope,
  HopRequest,
  InputPart,
  Item,
} from "@heddle/protocol";
import type { ArgumentSchema } from "./arguments.ts";
import type { ProcessTable } from "../commands/process-table.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

export interface PathUse {
  /** As the model wrote it, or absolute; relative to the call's folder. */
  readonly path: string;
  readonly access: "read" | "write";
}

export interface Tool<A = unknown> {
  /** Canonical; models may see another name (see registry). */
  readonly name: string;
  readonly description: string;
  readonly shape: "json" | "freeform";
  readonly input: ArgumentSchema<A>;
  /** JSON Schema of the arguments where `input` has none. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly effects: readonly Effect[];
  /** `prompt` asks before every call that changes something, whatever the envelope says. */
  readonly approval?: "auto" | "prompt";
  /** This call changes nothing: it needs no question and may be repeated after a crash. */
  isReadOnly(args: A): boolean;
  /** Then the call is aborted; a shorter limit of the tool's own gives a better report. */
  deadlineMs(args: A): number;
  /** Checked by dispatch before the tool runs, and again, race-free, when it opens them. */
  paths(args: A, context: CallContext): readonly PathUse[];
  describe(args: A, context: CallContext): Item;
  /** The question to the user, when policy says to ask. */
  question(args: A, context: CallContext): ApprovalQuestion;
  /** The call is a question to the user: it runs only with an answer. */
  readonly isQuestion?: true;
  /** What the call requests beyond its envelope, and the model's reason. Paths as the model wrote them. */
  requestedHop?(args: A, here: RequestContext): RequestedHop | undefined;
  /** The call belongs to another tool; it is judged and run as that one. */
  redirect?(args: A): { readonly tool: string; readonly input: unknown } | undefined;
  run(args: A, context: ToolContext): Promise<ToolResult>;
}

export interface RequestContext {
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
}

export interface RequestedHop {
  readonly request: HopRequest;
  readonly reason?: string | undefined;
  /** `call`: for this one. `answer`: the answer says for how long, and later calls have it too. */
  readonly scope: "call" | "answer";
}

/** Enough to describe a call without running it. */
export interface CallContext {
  readonly callId: string;
  readonly itemId: string;
  /** Absolute; relative paths start here. */
  readonly cwd: string;
}

export interface ToolContext extends CallContext {
  readonly signal: AbortSignal;
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
  /** The granted request; absent: there was none, or it was granted before. */
  readonly granted?: { readonly request: HopRequest; readonly scope: HopScope };
  /** The answer to the question before the call; absent: there was none. */
  readonly answer?: ApprovalAnswer;
  /** Asks a question while the call runs. */
  ask(question: ApprovalQuestion): Promise<ApprovalAnswer>;
  /** Live output of the running item; never stored as such. */
  stream(delta: string): void;
}

export interface ToolResult {
  readonly isError: boolean;
  /** What the model is told; capped by the tool. */
  readonly output: readonly InputPart[];
  /** The finished item: status, output, exit code. */
  readonly item: Item;
  /** Why, for an error; `tool.failed` with the first line of the output when absent. */
  readonly failure?: Failure;
  /** Set when the call is answered and its item goes on; `item` is then `inProgress`. */
  readonly ongoing?: OngoingItem;
}

/** The item of a command that outlived the call which started it. Whoever records the turn brings it to its one end. */
export interface OngoingItem {
  /** By which later calls know the command. */
  readonly processId: string;
  readonly isRunning: boolean;
  /** The finished item, when the command has ended. Never rejects. */
  readonly ended: Promise<Item>;
  /** The item when its turn ends before the command. Stops live output. */
  leave(): Item;
}

/** What outlives a call within one thread; closed with it. */
export interface ThreadState extends AsyncDisposable {
  readonly processes: ProcessTable;
  /** Folder for whole outputs that did not fit, outside every sandbox. */
  readonly spillDir: string;
  /** The complete environment of commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** From the next command on. */
  useEnvironment(environment: Readonly<Record<string, string>>): void;
}

/** How an agent may end the goal of its thread. */
export type GoalEndStatus = "complete" | "blocked";

/** Durable when it resolves; throws when the goal no longer exists. */
export type GoalEnd = (status: GoalEndStatus) => Promise<void>;
