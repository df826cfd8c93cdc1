/**
 * What a tool is. One tool per file in `builtin/`; only `dispatch` may call `run`, and the package's index exports no tool,
 * so that a body cannot be reached in any other way.
 */
import type {
  ApprovalAnswer,
  ApprovalQuestion,
  Effect,
  Envelope,
  Failure,
  HopScope,
  HopWish,
  InputPart,
  Item,
} from "@heddle/protocol";
import type { ArgumentSchema } from "./arguments.ts";
import type { ProcessTable } from "../commands/process-table.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

export interface PathUse {
  /** As the model wrote it or absolute; a relative one starts at the call's folder. */
  readonly path: string;
  readonly access: "read" | "write";
}

export interface Tool<A = unknown> {
  /** The canonical name; the name a model sees may differ by family (see registry). */
  readonly name: string;
  readonly description: string;
  readonly shape: "json" | "freeform";
  /** Parses what the model sent: the decoded JSON for `json`, the bare text for `freeform`. */
  readonly input: ArgumentSchema<A>;
  /** JSON Schema of the arguments where `input` does not know it: exactly as a server gave it. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly effects: readonly Effect[];
  /** Configured for this tool; `prompt` asks before every call that changes something, whatever the envelope says. */
  readonly approval?: "auto" | "prompt";
  /** This very call changes nothing, so it needs no question and may be run again after a crash. */
  isReadOnly(args: A): boolean;
  /** After this the call is aborted; a tool with a shorter limit of its own reports it better. */
  deadlineMs(args: A): number;
  /** Declared, never guessed from strings. Checked by dispatch before the tool runs, and race-free again when it opens them. */
  paths(args: A, place: CallPlace): readonly PathUse[];
  /** The item shown while the call runs, status `inProgress`. */
  describe(args: A, place: CallPlace): Item;
  /** The question for a person, when policy says to ask. */
  question(args: A, place: CallPlace): ApprovalQuestion;
  /** The call is a question to the user: it runs with the answer, and not without one. */
  readonly isQuestion?: true;
  /** What the call asks for beyond its envelope, and the model's words for why. Paths as the model wrote them. */
  wish?(args: A, here: WishPlace): WishedHop | undefined;
  /** The call is really another tool's; it is then judged and run as that one. */
  redirect?(args: A): { readonly tool: string; readonly input: unknown } | undefined;
  run(args: A, context: ToolContext): Promise<ToolResult>;
}

/** Where a call would run without its wish. */
export interface WishPlace {
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
}

export interface WishedHop {
  readonly wish: HopWish;
  readonly reason?: string | undefined;
  /** `call`: for this one. `answer`: the answer says for how long, and the calls that follow have it too. */
  readonly scope: "call" | "answer";
}

/** Where a call happens; enough to describe it without running it. */
export interface CallPlace {
  readonly callId: string;
  readonly itemId: string;
  /** Absolute; relative paths of the model start here. */
  readonly cwd: string;
}

export interface ToolContext extends CallPlace {
  readonly signal: AbortSignal;
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
  readonly state: ThreadState;
  /** What its wish came to; absent: it had none, or has it already. */
  readonly granted?: { readonly wish: HopWish; readonly scope: HopScope };
  /** What was answered to the question that came before the call; absent: nobody was asked. */
  readonly answer?: ApprovalAnswer;
  /** Puts a question that comes up while the call runs. */
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
  /** The item as a turn leaves it that ends before the command does. Live output goes to nobody from here on. */
  leave(): Item;
}

/** What outlives a call within one thread; closed with it. */
export interface ThreadState extends AsyncDisposable {
  readonly processes: ProcessTable;
  /** Folder for whole outputs that did not fit, outside every sandbox. */
  readonly spillDir: string;
  /** The complete environment of commands. */
  readonly environment: Readonly<Record<string, string>>;
}

/** How an agent may end the goal of its thread. */
export type GoalEndStatus = "complete" | "blocked";

/** Durable when it resolves; throws when the goal no longer exists. */
export type GoalEnd = (status: GoalEndStatus) => Promise<void>;
