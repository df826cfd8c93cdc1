/**
 * What a tool is. One tool per file in `builtin/`; only `dispatch` may call `run`, and the package's index exports no
 * tool.
 */
import type {
  ApprovalAnswer,
  ApprovalQuestion,
  Effect,
  Envelope,
  EvidenceEntry,
  EvidenceNote,
  EvidencePage,
  EvidenceQuery,
  Failure,
  HopScope,
  HopRequest,
  InputPart,
  Item,
  StoredAnswer,
} from "@heddle/protocol";
import type { ArgumentSchema } from "./arguments.ts";
import type { HopAsked } from "./hop-rules.ts";
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
  /** Judges the call itself, before the user is asked; policy still decides besides. */
  admit?(args: A, context: CallContext): Promise<Admission>;
  /** The call is a question to the user: it runs only with an answer. */
  readonly isQuestion?: true;
  /** What the call requests beyond its envelope, and the model's reason. Paths as the model wrote them. */
  requestedHop?(args: A, here: RequestContext): RequestedHop | undefined;
  /** The call belongs to another tool; it is judged and run as that one. */
  redirect?(args: A): { readonly tool: string; readonly input: unknown } | undefined;
  run(args: A, context: ToolContext): Promise<ToolResult>;
}

/** What a tool says of a call of its own before it runs. */
export type Admission =
  | { readonly kind: "run" }
  | { readonly kind: "refused"; readonly failure: Failure }
  /** The user is asked; `declined` records that and returns why the call does not run. */
  | {
      readonly kind: "ask";
      readonly question: ApprovalQuestion;
      readonly declined: (why: string | undefined) => Promise<Failure>;
    };

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
  readonly answer?: StoredAnswer;
  /** Asks a question while the call runs. */
  ask(question: ApprovalQuestion): Promise<ApprovalAnswer>;
  /** Live output of the running item; never stored as such. */
  stream(delta: string): void;
  /** Called before files are written; throws when the envelope allows no more. */
  onWrite(bytes: number): void;
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
  readonly blobFolder: string;
  /** The complete environment of commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** From the next command on. */
  useEnvironment(environment: Readonly<Record<string, string>>): void;
}

/** Changes the envelope of the thread for the tool `hop`; see `agent/approvals/envelope-hops.ts`. */
export interface EnvelopeHops {
  /** Looks at the edge, its guards and the ceiling; a refusal is recorded. */
  admit(request: HopAsked, call: CallContext): Promise<Admission>;
  /** Durable when it resolves; returns what the model reads about the envelope it is in now. */
  enter(call: CallContext, answer: StoredAnswer | undefined): Promise<string>;
}

/** How an agent may end the goal of its thread. */
export type GoalEndStatus = "complete" | "blocked";

/** Durable when it resolves; throws when the goal no longer exists. */
export type GoalEnd = (status: GoalEndStatus) => Promise<void>;

/** The evidence, for the tools of one turn. */
export interface EvidencePort {
  search(query: EvidenceQuery, signal: AbortSignal): Promise<EvidencePage>;
  /** Durable when it resolves. The same call notes once. */
  note(note: EvidenceNote, callId: string): Promise<EvidenceEntry>;
}
