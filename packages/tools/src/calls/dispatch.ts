/**
 * The only caller of a tool. Every call passes the same checks in the same order, and every way out is an outcome
 * with an item, refusals too. A tool that throws fails its call, not the turn.
 *
 *   cancelled? → tool of the family → envelope unchanged, with the tool in it → input decoded → effects within the ceiling → paths → request within the
 *   thread's ceiling → policy → guard → ask → hop (durable) → onStarted (intent durable) → run with a deadline → sweep → outcome
 */
import {
  HeddleError,
  toHeddleError,
  type ApprovalAnswer,
  type ApprovalQuestion,
  type Failure,
  type InputPart,
  type Item,
  type ItemDelta,
  type ItemStatus,
} from "@heddle/protocol";
import { callItem } from "./call-item.ts";
import { decodeInput, parseArguments, type ToolCall } from "./decode.ts";
import type { SandboxContext } from "./hop-request.ts";
import { CANCELLED, isReadOnly, judge, type Admitted, type Behind, type JudgeContext, type Refusal } from "./judge.ts";
import { findTool, isNamed, isWithin, toolNamed, type Toolset } from "./registry.ts";
import type { ProtectedPathViolation } from "../sandbox/sandbox.ts";
import type { CallContext, OngoingItem, Tool, ToolResult } from "./tool.ts";

export interface DispatchContext extends JudgeContext {
  readonly toolset: Toolset;
  /** Absolute. */
  readonly cwd: string;
  /** The envelope that the thread has entered since the model was offered its tools: no call was meant for it. */
  readonly changedTo?: string | undefined;
  newItemId(): string;
  /** Must make both durable before it resolves: the effect begins right after. If it fails, the call does not run. */
  onStarted(item: Item, intent: ToolIntent): Promise<void>;
  onViolation(violation: ProtectedPathViolation): Promise<void>;
  stream(delta: Omit<ItemDelta, "threadId" | "turnId">): void;
}

export interface ToolIntent {
  readonly callId: string;
  readonly itemId: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly isReadOnly: boolean;
}

export interface DispatchOutcome {
  /** `denied`: never ran. `cancelled`: the turn is being stopped, by its signal or by the answer to a question. */
  readonly kind: "ok" | "failed" | "denied" | "cancelled";
  /** Canonical name, or the model's own when there is no such tool. */
  readonly tool: string;
  readonly item: Item;
  /** False: `onStarted` was not called for this item. */
  readonly isStarted: boolean;
  readonly output: readonly InputPart[];
  readonly failure?: Failure;
  /** Into files, by a file tool; absent: nothing. */
  readonly bytesWritten?: number;
  /** The call is answered; its item, still `inProgress`, ends later. */
  readonly ongoing?: OngoingItem;
}

/** How long a stopped tool may take to settle before its call ends without it. */
const SETTLE_GRACE_MS = 5500;

export async function dispatch(call: ToolCall, context: DispatchContext): Promise<DispatchOutcome> {
  const callContext: CallContext = { callId: call.callId, itemId: context.newItemId(), cwd: context.cwd };
  if (context.signal.aborted) return unread(call, callContext, "cancelled", CANCELLED);
  const admitted = await admit(call, callContext, context);
  if ("outcome" in admitted) return admitted.outcome;
  const verdict = await judge(admitted, callContext, context);
  if (verdict.kind !== "run") return refused(admitted, callContext, verdict);
  const beyond = refusalOf(() => context.meter?.begin());
  if (beyond !== undefined) return refused(admitted, callContext, beyond);
  const { tool, args, input } = admitted;
  await context.onStarted(tool.describe(args, callContext), {
    callId: callContext.callId,
    itemId: callContext.itemId,
    tool: tool.name,
    arguments: input,
    isReadOnly: isReadOnly(tool, args),
  });
  const outcome = await carryOut(admitted, callContext, { context, behind: verdict });
  return sweepAfter(tool, outcome, { context, target: verdict.target });
}

/** Calls side by side may each have been let through by a check before the other began. */
function refusalOf(begin: () => void): Refusal | undefined {
  try {
    begin();
    return undefined;
  } catch (error) {
    return { kind: "denied", failure: failureOf(error) };
  }
}

/** The tool and its arguments, or the refusal. */
async function admit(
  call: ToolCall,
  callContext: CallContext,
  context: DispatchContext,
): Promise<Admitted | { readonly outcome: DispatchOutcome }> {
  const tool = await findTool(context.toolset, call.name);
  if (tool === undefined) {
    const offered = context.toolset.offered.map(({ name }) => name).join(", ");
    const message = `there is no tool ${JSON.stringify(call.name.slice(0, 100))}; there are: ${offered}`;
    return { outcome: unread(call, callContext, "denied", { code: "tool.unknown", message }) };
  }
  const read = readCall(call, tool);
  const failure = misplaced(tool, context);
  if (failure !== undefined) {
    // Parsed in any case, so that the refused call is shown as what it is: a patch with its paths, not a bare call.
    return "message" in read
      ? { outcome: unread(call, callContext, "denied", failure) }
      : { outcome: refused(read, callContext, { kind: "denied", failure }) };
  }
  if ("message" in read) return { outcome: invalid(call, callContext, read.message) };
  const other = tool.redirect?.(read.args);
  const otherTool = other === undefined ? undefined : await toolNamed(other.tool);
  if (other === undefined || otherTool === undefined) return within(read);
  const otherArgs = parseArguments(otherTool.input, other.input);
  if (otherArgs.kind === "bad") return { outcome: invalid(call, callContext, otherArgs.message) };
  return within({ tool: otherTool, args: otherArgs.value, input: other.input });

  function within(admitted: Admitted): Admitted | { readonly outcome: DispatchOutcome } {
    if (isWithin(admitted.tool, context.envelope)) return admitted;
    return { outcome: refused(admitted, callContext, { kind: "denied", failure: notHere(admitted.tool, context) }) };
  }
}

/** The arguments of a call, or why they are invalid. */
function readCall(call: ToolCall, tool: Tool): Admitted | { readonly message: string } {
  const decoded = decodeInput(call, tool.shape);
  if (decoded.kind === "bad") return decoded;
  const parsed = parseArguments(tool.input, decoded.value);
  return parsed.kind === "bad" ? parsed : { tool, args: parsed.value, input: decoded.value };
}

async function carryOut(
  admitted: Admitted,
  callContext: CallContext,
  { context, behind }: { readonly context: DispatchContext; readonly behind: Behind },
): Promise<DispatchOutcome> {
  const { tool, args } = admitted;
  const deadline = AbortSignal.timeout(tool.deadlineMs(args));
  const signal = AbortSignal.any([context.signal, deadline]);
  const { target, ...answered } = behind;
  const { envelope, sandbox } = target;
  const stream = (delta: string): void => context.stream({ itemId: callContext.itemId, channel: "output", delta });
  let bytesWritten = 0;
  const onWrite = (bytes: number): void => {
    context.meter?.write(bytes);
    bytesWritten += bytes;
  };
  const counted = <T extends DispatchOutcome>(outcome: T): T =>
    bytesWritten === 0 ? outcome : { ...outcome, bytesWritten };
  try {
    signal.throwIfAborted();
    const ask = (question: ApprovalQuestion): Promise<ApprovalAnswer> => context.ask(question, signal);
    const given = { ...callContext, signal, envelope, sandbox, state: context.state, stream, ask, onWrite };
    const running = tool.run(args, { ...given, ...answered });
    return counted(settled(tool, await settleAfterAbort(running, signal)));
  } catch (error) {
    const failure = context.signal.aborted
      ? CANCELLED
      : deadline.aborted
        ? { code: "tool.timeout", message: `the call did not finish in ${tool.deadlineMs(args)} ms` }
        : failureOf(error);
    const kind = context.signal.aborted ? "cancelled" : "failed";
    const item = settledItem(
      tool.describe(args, callContext),
      kind === "failed" ? "failed" : "interrupted",
      failure.message,
    );
    return counted({ kind, tool: tool.name, item, isStarted: true, output: text(failure.message), failure });
  }
}

function settled(tool: Tool, result: ToolResult): DispatchOutcome {
  const { item, output, ongoing } = result;
  const common = { tool: tool.name, item, isStarted: true, output, ...(ongoing && { ongoing }) };
  if ("status" in item && item.status === "interrupted") return { ...common, kind: "cancelled", failure: CANCELLED };
  if (!result.isError) return { ...common, kind: "ok" };
  return { ...common, kind: "failed", failure: result.failure ?? { code: "tool.failed", message: firstLine(output) } };
}

/** A stopped tool gets time to report what it did; one that never returns does not hold the turn. */
async function settleAfterAbort<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  const lost = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(
      () => lost.reject(new HeddleError("tool.timeout", "the tool did not stop when it was asked to")),
      SETTLE_GRACE_MS,
    );
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([running, lost.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

/** Protected paths that appeared during a call are moved away and reported, whatever its result. */
async function sweepAfter(
  tool: Tool,
  outcome: DispatchOutcome,
  { context, target }: { readonly context: DispatchContext; readonly target: SandboxContext },
): Promise<DispatchOutcome> {
  if (!tool.effects.some((effect) => effect === "write" || effect === "exec")) return outcome;
  let violations: readonly ProtectedPathViolation[];
  try {
    // A call that the user allowed outside may do anything, unless a command inside could have done it at the same
    // time.
    const isLetOut = target.envelope.sandbox === "off" && context.envelope.sandbox !== "off";
    if (isLetOut && context.state.processes.running.length === 0) await context.sandbox.accept();
    violations = await (isLetOut ? context : target).sandbox.sweep();
  } catch (error) {
    const failure = {
      code: "sandbox.failed",
      message: `looking for protected paths failed: ${toHeddleError(error).message}`,
    };
    const kind = outcome.kind === "cancelled" ? "cancelled" : "failed";
    return { ...outcome, kind, failure, output: [...outcome.output, ...text(failure.message)] };
  }
  if (violations.length === 0) return outcome;
  for (const violation of violations) await context.onViolation(violation);
  const paths = violations.map(({ path }) => path).join(", ");
  const note = `Heddle protects these paths and has undone what was made there: ${paths}`;
  return { ...outcome, output: [...outcome.output, ...text(note)] };
}

function misplaced(tool: Tool, context: DispatchContext): Failure | undefined {
  const { changedTo, envelope } = context;
  if (changedTo === undefined) return isNamed(tool, envelope) ? undefined : notHere(tool, context);
  const message = `not run: the thread is in the envelope "${changedTo}" since this call was written; look at the tools there and call again`;
  return { code: "envelope.changed", message };
}

function notHere(tool: Tool, { envelope }: DispatchContext): Failure {
  return { code: "policy.denied", message: `${tool.name} is not available in the envelope "${envelope.id}"` };
}

function invalid(call: ToolCall, callContext: CallContext, message: string): DispatchOutcome {
  return unread(call, callContext, "failed", { code: "tool.invalid-arguments", message });
}

/** The whole is in the model's recorded response. */
const MAX_ARGUMENT_CHARS = 4096;
const STATUS = { ok: "completed", failed: "failed", denied: "declined", cancelled: "interrupted" } as const;

/** For a call whose arguments were not understood. */
function unread(
  call: ToolCall,
  callContext: CallContext,
  kind: DispatchOutcome["kind"],
  failure: Failure,
): DispatchOutcome {
  const { input } = call;
  const isCut = input.length > MAX_ARGUMENT_CHARS;
  const shown = isCut ? `${input.slice(0, MAX_ARGUMENT_CHARS)}…` : input;
  const item = {
    ...callItem(call.name.slice(0, 100), shown.toWellFormed(), callContext),
    status: STATUS[kind],
    error: failure.message,
  };
  return { kind, tool: call.name.slice(0, 100), item, isStarted: false, output: text(failure.message), failure };
}

function refused({ tool, args }: Admitted, callContext: CallContext, { kind, failure }: Refusal): DispatchOutcome {
  // A user who stops the turn at a question has declined the call; it never began.
  const item = settledItem(tool.describe(args, callContext), "declined", failure.message);
  return { kind, tool: tool.name, item, isStarted: false, output: text(failure.message), failure };
}

function settledItem(item: Item, status: ItemStatus, message: string): Item {
  if (!("status" in item)) return item;
  const hasReason = item.type !== "plan" && item.type !== "proposedPlan";
  return hasReason ? { ...item, status, error: message } : { ...item, status };
}

function failureOf(error: unknown): Failure {
  const { code, message, details } = toHeddleError(error, "tool.failed");
  return Object.keys(details).length === 0 ? { code, message } : { code, message, details: { ...details } };
}

function firstLine(output: readonly InputPart[]): string {
  const part = output.find(({ type }) => type === "text");
  return part?.type === "text" ? (part.text.split("\n", 1)[0] ?? "").slice(0, 500) : "the tool failed";
}

function text(message: string): InputPart[] {
  return [{ type: "text", text: message }];
}
