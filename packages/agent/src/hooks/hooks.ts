/**
 * The user's hooks: programs that run at fixed points of a turn, inside the thread's sandbox, bounded in time and
 * output; every run is a stored event. A hook that cannot start, fails or takes too long is reported and counts as its
 * `onFailure` says.
 */
import { clockMs, HeddleError, toHeddleError, type EventOf, type HookConfig, type HookEvent } from "@heddle/protocol";
import { CappedOutput, startCommand } from "@heddle/tools";
import type { HookAnswer } from "./hook-answer.ts";
import { toFailure } from "../turns/outcome.ts";
import { takeStoredRun } from "../approvals/carried.ts";
import type { TurnRequest } from "../runners/runner.ts";
import type { OpenHooks, PolicyIo } from "../turns/policy.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024;
/** A larger call is not put through a pipe. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;
const MAX_COMMAND_CHARS = 500;

export interface HookQuestion {
  readonly subject?: string;
  /** What matchers are tested against; absent: the subject. */
  readonly names?: readonly string[];
  readonly payload: Readonly<Record<string, unknown>>;
  /** Instead of the turn's signal and the hook's own time limit. */
  readonly limit?: { readonly signal: AbortSignal; readonly timeoutMs: number };
}

export interface HookVerdict {
  readonly isBlocked: boolean;
  readonly reason: string;
  readonly notes: readonly string[];
}

export interface TurnHooks {
  /** Runs every matching hook in the order of the configuration, up to the first refusal. */
  run(event: HookEvent, question: HookQuestion): Promise<HookVerdict>;
}

const NOTHING_AGAINST_IT: HookVerdict = { isBlocked: false, reason: "", notes: [] };

/** Throws `config.invalid` for a matcher that is not a regular expression. */
export function checkedHooks(hooks: readonly HookConfig[]): OpenHooks {
  for (const hook of hooks) matches(hook, []);
  return (turn, io) => turnHooks(hooks, turn, io);
}

function turnHooks(hooks: readonly HookConfig[], turn: TurnRequest, io: PolicyIo): TurnHooks {
  async function ask(hook: HookConfig, question: HookQuestion): Promise<HookAnswer> {
    const { event } = hook;
    const { signal } = question.limit ?? io;
    const stored = takeStoredRun(turn.carried, { event, command: commandOf(hook), ...subjectOf(question) });
    if (stored !== undefined) return answerOf(stored);
    const { answer, ran } = await runHook(hook, turn, question, signal);
    await io.record([{ type: "hook.ran", v: 1, turnId: turn.turnId, event, ...subjectOf(question), ...ran }], "system");
    signal.throwIfAborted();
    return answer;
  }

  return {
    async run(event, question) {
      const asked = hooks.filter((hook) => hook.event === event && matches(hook, namesOf(question)));
      if (asked.length === 0) return NOTHING_AGAINST_IT;
      const notes: string[] = [];
      for (const hook of asked) {
        const answer = await ask(hook, question);
        if (answer.kind === "failed") continue;
        notes.push(...answer.notes);
        if (answer.kind === "blocked") return { isBlocked: true, reason: answer.reason, notes };
      }
      return { ...NOTHING_AGAINST_IT, notes };
    },
  };
}

function namesOf({ names, subject }: HookQuestion): readonly string[] {
  return names ?? (subject === undefined ? [] : [subject]);
}

function subjectOf({ subject }: HookQuestion): { subject?: string } {
  return subject === undefined ? {} : { subject };
}

function matches({ matcher, event }: HookConfig, names: readonly string[]): boolean {
  if (matcher === undefined || matcher === "" || matcher === "*") return true;
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^(?:${matcher})$`, "u");
  } catch (cause) {
    const message = `the matcher ${JSON.stringify(matcher)} of a ${event} hook is not a regular expression`;
    throw new HeddleError("config.invalid", message, { cause });
  }
  return names.some((name) => pattern.test(name));
}

/** From a stored run. */
async function answerOf({ event, outcome, reason = "", output }: EventOf<"hook.ran">): Promise<HookAnswer> {
  if (outcome === "blocked") return { kind: "blocked", reason, notes: [] };
  if (outcome === "failed") return { kind: "failed", message: output };
  const { readHookAnswer } = await import("./hook-answer.ts");
  return readHookAnswer(event, 0, output);
}

function commandOf({ command }: HookConfig): string {
  return (typeof command === "string" ? command : command.join(" ")).slice(0, MAX_COMMAND_CHARS);
}

type Ran = Omit<EventOf<"hook.ran">, "type" | "v" | "turnId" | "event" | "subject">;

async function runHook(
  hook: HookConfig,
  turn: TurnRequest,
  question: HookQuestion,
  signal: AbortSignal,
): Promise<{ answer: HookAnswer; ran: Ran }> {
  const startedAt = clockMs();
  const output = new CappedOutput({ headBytes: MAX_OUTPUT_BYTES / 2, tailBytes: MAX_OUTPUT_BYTES / 2 });
  let exitCode: number | undefined;
  let answer: HookAnswer;
  try {
    exitCode = await execute(hook, turn, { question, output, signal });
    const { readHookAnswer, BLOCKING_EXIT } = await import("./hook-answer.ts");
    const printed = output.snapshot().text;
    const missing = exitCode === BLOCKING_EXIT ? await missingScript(hook, turn, printed, signal) : undefined;
    answer =
      missing === undefined
        ? readHookAnswer(hook.event, exitCode, printed)
        : { kind: "failed", message: `${missing} does not exist, or is not visible in the sandbox` };
  } catch (error) {
    answer = { kind: "failed", message: toHeddleError(error).message };
  }
  const { text, truncatedBytes } = output.snapshot();
  const common = {
    command: commandOf(hook),
    durationMs: Math.round(clockMs() - startedAt),
    output: text,
    ...(truncatedBytes > 0 ? { truncatedBytes } : {}),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
  if (answer.kind === "ok") return { answer, ran: { ...common, outcome: "ok" } };
  if (answer.kind === "blocked") return { answer, ran: { ...common, outcome: "blocked", reason: answer.reason } };
  const failure = toFailure(new HeddleError("tool.failed", answer.message));
  if (!isClosed(hook)) return { answer, ran: { ...common, outcome: "failed", failure } };
  const reason = `a hook failed, which counts as a refusal: ${answer.message}`;
  return { answer: { kind: "blocked", reason, notes: [] }, ran: { ...common, outcome: "blocked", reason, failure } };
}

/**
 * Several interpreters exit with the code of a refusal when they cannot open their script. A path of the command that
 * the output names and that does not exist in the sandbox is such a script: nothing was refused.
 */
async function missingScript(
  { command }: HookConfig,
  turn: TurnRequest,
  printed: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const words = typeof command === "string" ? command.split(/[\s"';|&()]+/) : command;
  const paths = words.filter((word) => /[/.]\w/.test(word) && !word.startsWith("-") && printed.includes(word));
  if (paths.length === 0) return undefined;
  const output = new CappedOutput({ headBytes: MAX_OUTPUT_BYTES, tailBytes: 0 });
  const look = 'for path; do [ -e "$path" ] || { printf %s "$path"; exit 0; }; done';
  await execute({ event: "Stop", command: ["/bin/sh", "-c", look, "sh", ...paths] }, turn, {
    question: { payload: {} },
    output,
    signal,
  });
  return output.snapshot().text || undefined;
}

function isClosed({ event, onFailure }: HookConfig): boolean {
  return (onFailure ?? (event === "PreToolUse" ? "closed" : "open")) === "closed";
}

async function execute(
  hook: HookConfig,
  turn: TurnRequest,
  run: { readonly question: HookQuestion; readonly output: CappedOutput; readonly signal: AbortSignal },
): Promise<number> {
  const { question, output, signal } = run;
  const payload = `${JSON.stringify({ ...commonPayload(hook.event, turn), ...question.payload })}\n`;
  if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES) {
    throw new HeddleError("limit.reached", `its input would be larger than ${MAX_PAYLOAD_BYTES} bytes`);
  }
  const timeoutMs = Math.min(hook.timeoutMs ?? DEFAULT_TIMEOUT_MS, question.limit?.timeoutMs ?? Infinity);
  await using owned = await startCommand({
    sandbox: turn.sandboxContext.sandbox,
    argv: typeof hook.command === "string" ? ["/bin/sh", "-c", hook.command] : hook.command,
    cwd: turn.workspace,
    env: turn.sandboxContext.state.environment,
    stdin: "pipe",
    output,
    signal,
    timeoutMs,
  });
  // Awaited only at the end: a hook may never read its input, or may have ended.
  const written = owned.write(payload).then(
    () => owned.endInput(),
    () => undefined,
  );
  const exit = await owned.exited;
  await written;
  await output.close();
  if (exit.cause === "timeout") throw new HeddleError("tool.timeout", `it did not end in ${timeoutMs} ms`);
  if (exit.cause !== "exited") throw new HeddleError("tool.cancelled", "it was stopped with the turn");
  if (exit.exitCode === undefined) throw new HeddleError("tool.failed", `it was ended by ${exit.signal ?? "a signal"}`);
  return exit.exitCode;
}

function commonPayload(
  event: HookEvent,
  { threadId, turnId, workspace, settings }: TurnRequest,
): Record<string, unknown> {
  const isFree = settings.sandboxMode === "danger-full-access" && settings.approvalPolicy === "never";
  return {
    session_id: threadId,
    turn_id: turnId,
    transcript_path: null,
    cwd: workspace,
    hook_event_name: event,
    model: settings.model,
    permission_mode: isFree ? "bypassPermissions" : "default",
  };
}
