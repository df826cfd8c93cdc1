/**
 * What a tool is. One tool per file in `builtin/`; only `dispatch` may call `run`.
 */
import type { ApprovalQuestion, Effect, Envelope, InputPart, Item } from "@heddle/protocol";
import type { z } from "zod";
import type { Sandbox } from "./sandbox/sandbox.ts";

export interface PathUse {
  readonly path: string;
  readonly access: "read" | "write";
}

export interface Tool<A = unknown> {
  /** The canonical name; the name a model sees may differ by family (see registry). */
  readonly name: string;
  readonly description: string;
  readonly shape: "json" | "freeform";
  /** Parses what the model sent: the decoded JSON for `json`, the bare text for `freeform`. */
  readonly input: z.ZodType<A>;
  readonly effects: readonly Effect[];
  /** Declared, never guessed from strings. Checked by dispatch before the tool runs, and race-free again when it opens them. */
  paths(args: A, context: CallPlace): readonly PathUse[];
  /** The item shown while the call runs, status `inProgress`. */
  describe(args: A, place: CallPlace): Item;
  /** The question for a person, when policy says to ask. */
  question(args: A, place: CallPlace): ApprovalQuestion;
  run(args: A, context: ToolContext): Promise<ToolResult>;
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
  /** What outlives a call within one thread: open processes, the files the model has read. */
  readonly state: ThreadState;
  /** Live output of the running item; never stored as such. */
  stream(delta: string): void;
}

export interface ToolResult {
  readonly isError: boolean;
  /** What the model is told; capped by the tool. */
  readonly output: readonly InputPart[];
  /** The finished item: status, output, exit code. */
  readonly item: Item;
}

/** Per thread, closed with it. */
export interface ThreadState extends AsyncDisposable {
  readonly processes: ProcessTable;
  /** Folder for whole outputs that did not fit, outside every sandbox. */
  readonly spillDir: string;
}

/** Commands that stay open between calls, by the id the model knows. */
export interface ProcessTable extends AsyncDisposable {
  readonly size: number;
}
