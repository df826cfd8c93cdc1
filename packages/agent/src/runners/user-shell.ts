/**
 * A command of the user, as a turn of its own or beside a running one: it runs in the thread's sandbox, is recorded
 * like the agent's commands, and the model sees it with the next request. It needs no approval.
 */
import { existsSync } from "node:fs";
import { HeddleError, newCallId, newItemId, type By, type Item, type ItemOf } from "@heddle/protocol";
import { fitText, keptWhole } from "@heddle/tools";
import { toFailure, NOTHING_SPENT, admissionOf } from "../turns/outcome.ts";
import type { BareIo, RunnerEvent, TurnOutcome, TurnRequest } from "./runner.ts";

const TOOL = "shell";
const MAX_CONTEXT_BYTES = 16 * 1024;

export interface UserCommand extends By {
  readonly command: string;
  readonly timeoutMs?: number | undefined;
}

export async function runUserShell(turn: TurnRequest, io: BareIo): Promise<TurnOutcome> {
  const { subject: command = "", timeoutMs, by } = admissionOf(turn);
  try {
    await runUserCommand(turn, io, { command, timeoutMs, by });
    return { kind: "completed", spent: NOTHING_SPENT };
  } catch (error) {
    return { kind: "failed", failure: toFailure(error), spent: NOTHING_SPENT };
  }
}

/** Throws when the command did not end by itself; that is recorded as well. */
export async function runUserCommand(
  turn: TurnRequest,
  io: BareIo,
  { command, timeoutMs, by }: UserCommand,
): Promise<void> {
  const { turnId, workspace } = turn;
  const { sandbox, state } = turn.sandboxContext;
  const [callId, itemId] = [newCallId(), newItemId()];
  const started: ItemOf<"commandExecution"> = {
    type: "commandExecution",
    id: itemId,
    callId,
    source: "user",
    command,
    cwd: workspace,
    status: "inProgress",
    output: "",
  };
  const call = { turnId, callId, itemId, tool: TOOL };
  await io.record(
    [
      { type: "tool.intended", v: 1, ...call, arguments: { command }, isReadOnly: false },
      { type: "item.started", v: 1, turnId, item: started },
    ],
    by,
  );
  const open = await state.processes.start({
    command,
    argv: [existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh", "-c", command],
    cwd: workspace,
    env: state.environment,
    stdin: "ignore",
    sandbox,
    onText: (delta) => io.stream({ itemId, channel: "output", delta }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const stop = (): void => void open.kill().catch(() => undefined);
  io.signal.addEventListener("abort", stop, { once: true });
  if (io.signal.aborted) stop();
  const wait = open.await(itemId);
  const exit = await open.ended;
  wait[Symbol.dispose]();
  io.signal.removeEventListener("abort", stop);
  state.processes.forget(open.id);
  const { text: output, truncatedBytes, ...whole } = open.snapshot();
  const isEnded = exit.cause === "exited";
  const item: Item = {
    ...started,
    status: io.signal.aborted ? "interrupted" : isEnded && exit.exitCode !== undefined ? "completed" : "failed",
    output,
    durationMs: Math.round(exit.durationMs),
    ...(truncatedBytes > 0 ? { truncatedBytes } : {}),
    ...keptWhole(whole),
    ...(exit.exitCode === undefined ? {} : { exitCode: exit.exitCode }),
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
    ...(exit.cause === "timeout" ? { error: `it did not end in ${timeoutMs ?? 0} ms` } : {}),
  };
  const ending = isEnded ? `Exit code: ${exit.exitCode ?? exit.signal ?? "none"}` : `Stopped: ${exit.cause}`;
  const contextText = [
    "The user ran a command in this workspace:",
    command,
    ending,
    `Output:\n${fitText(output, MAX_CONTEXT_BYTES)}`,
  ].join("\n");
  const events: RunnerEvent[] = [
    {
      type: "tool.settled",
      v: 1,
      ...call,
      outcome: io.signal.aborted ? "cancelled" : exit.exitCode === 0 && isEnded ? "ok" : "failed",
      output: [{ type: "text", text: contextText }],
    },
    { type: "item.completed", v: 1, turnId, item },
    { type: "context.added", v: 1, turnId, source: "shell", name: TOOL, text: contextText },
  ];
  await io.record(events, by);
  if (exit.cause === "timeout")
    throw new HeddleError("tool.timeout", `the command did not end in ${timeoutMs ?? 0} ms`);
  io.signal.throwIfAborted();
}
