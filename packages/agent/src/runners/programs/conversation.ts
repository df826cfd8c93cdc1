/**
 * What a runner for one kind of program writes: how it is started, and how what it says becomes facts of the turn. Everything
 * else (its process, its sandbox, hooks, steering, interrupts, the end) is `program-runner.ts`, the same for all.
 */
import type {
  ApprovalAnswer,
  ApprovalQuestion,
  Envelope,
  HandleOrigin,
  InputPart,
  NativeEnd,
  SandboxLevel,
  TurnSettings,
  Usage,
} from "@heddle/protocol";
import { HeddleError } from "@heddle/protocol";
import type { RunnerCapabilities } from "../abilities.ts";
import type { ItemLog } from "./item-log.ts";
import type { forwarderCommand } from "./opencode-forwarder.ts";

/** One kind of program. */
export interface Dialect {
  readonly capabilities: RunnerCapabilities;
  /** It holds answers to a schema itself; absent: it gets the schema as text, and Heddle checks. */
  readonly holdsSchema?: true;
  /** Its process takes one prompt and exits by itself; a further one gets a process of its own. */
  readonly isPerPrompt?: true;
  /** How its process is started for this turn: arguments after those of the program, and variables. */
  launch(turn: LaunchedTurn): {
    readonly args: readonly string[];
    readonly variables: Readonly<Record<string, string>>;
  };
  /** The program does not speak in lines: another one does, which runs in its place and reaches it. */
  readonly forwarder?: typeof forwarderCommand;
  open(wire: Wire, turn: ProgramTurn): Conversation;
}

export interface LaunchedTurn {
  readonly settings: TurnSettings;
  readonly envelope: Envelope;
  readonly workspace: string;
  /** Undefined: the program's own. */
  readonly model: string | undefined;
  readonly handle: KnownHandle | undefined;
  /** For a conversation whose id the caller chooses. */
  readonly newHandle: string;
  /** Its program has lost the conversation of the thread: this one is in place of it. */
  readonly isInstead?: boolean;
}

/** The conversation of an earlier turn, by its program's own name. */
export interface KnownHandle {
  readonly id: string;
  /** It belongs to the thread that this one was forked from: it must not be continued, only copied. */
  readonly isOfOther: boolean;
}

/** Of a program whose caller says at its start which conversation it is. */
export function originOf({ handle, isInstead }: Pick<LaunchedTurn, "handle" | "isInstead">): HandleOrigin {
  if (isInstead === true) return "retold";
  if (handle === undefined) return "new";
  return handle.isOfOther ? "forked" : "resumed";
}

export interface Wire {
  /** One JSON message. */
  send(message: object): Promise<void>;
  /** Text as it is, and nothing after it. */
  finish(text: string): Promise<void>;
}

/** What a conversation knows of its turn, and tells it. */
export interface ProgramTurn extends LaunchedTurn {
  readonly turnId: string;
  readonly sandboxLevel: SandboxLevel;
  /** The version its program has told; undefined: none. */
  readonly version: string | undefined;
  readonly items: ItemLog;
  readonly signal: AbortSignal;
  /** As soon as the program's own name of the conversation is known. The same again tells nothing. */
  readonly connected: (found: Connected) => Promise<void>;
  /** One request to a model, when it has ended. */
  readonly spent: (call: ModelCall) => Promise<void>;
  /** By Heddle's policy, and where that asks, by whoever follows the thread. */
  readonly decide: (question: ApprovalQuestion, act: Act, takenBack?: AbortSignal) => Promise<ApprovalAnswer>;
  /** A message that means nothing here; counted. */
  readonly unknown: (kind: string) => void;
  /** What the program says of itself at its start, in place of what its dialect says of all such programs. */
  readonly declared: (found: Partial<RunnerCapabilities>) => void;
  /** By a person who has joined in the agent's own interface: the owner. */
  readonly said: (text: string) => Promise<void>;
  /** What its turns before this one used in the same conversation, for programs that count on. */
  readonly countedBefore?: Usage | undefined;
  /** For the user. */
  readonly warn: (code: string, message: string) => Promise<void>;
}

export interface Connected {
  readonly handle: string;
  readonly origin: HandleOrigin;
  readonly model?: string | undefined;
}

export interface ModelCall {
  readonly model: string | undefined;
  /** What it said, for whoever continues the thread. */
  readonly text: string;
  readonly stopReason: string;
  readonly usage: Usage;
  readonly costUsd?: number | undefined;
}

/** What an agent asks about, for the policy. */
export interface Act {
  /** Of what it would do: `write` and `net` are looked at. */
  readonly effect: "read" | "write" | "exec" | "net" | "other";
  /** It changes nothing, as far as is known. */
  readonly isHarmless: boolean;
  /** It asks for more than its sandbox gives. */
  readonly isBeyond: boolean;
}

export interface Conversation {
  /**
   * Until prompts can be sent. `forgot`: it does not know what its handle stands for, and gets everything as text. Here and
   * at the first prompt a `ConversationLost` means the same of a program that must be started anew for it.
   */
  begin(): Promise<"knows" | "forgot">;
  /** One message, in order. What takes long (a question) must not be waited for here. */
  receive(message: unknown): Promise<void>;
  /** Told before the input: what was said without this program. Resolves when the program says that it is done. */
  prompt(input: readonly InputPart[], told: string | undefined): Promise<NativeOutcome>;
  /** Input for the turn that runs. False: it has just ended, and takes none. */
  steer(input: readonly InputPart[]): Promise<boolean>;
  /** In its own way. */
  interrupt(): Promise<void>;
  /** The program has ended: whoever waits for its answer gets this, or what the dialect returns in its place. */
  lost(error: HeddleError): HeddleError | void;
  /** It has said its end, and its process exits by itself. */
  readonly isOver?: boolean;
}

/** The program was started with a handle, and has no such conversation. Nothing was done. */
export class ConversationLost extends HeddleError {
  constructor(message: string) {
    super("runner.failed", message);
  }
}

/** `failed` although it may be called a success, see each dialect. */
export type NativeOutcome =
  /** `untaken`: input it was given while it worked, and never took up. */
  | { readonly kind: "completed"; readonly native: NativeEnd; readonly untaken?: readonly InputPart[] }
  | { readonly kind: "interrupted"; readonly native: NativeEnd }
  | { readonly kind: "failed"; readonly error: HeddleError };
