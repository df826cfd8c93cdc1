/**
 * The item of a command, from its start to its one end:
 *
 *   started --ends within its call--> completed | failed | interrupted
 *   started --outlives its call--> ongoing --ends--> completed | failed | interrupted
 *                                     └--the turn ends first and leaves the command running--> completed, with processId
 *
 * While it is ongoing it hears all output, and calls that read the command (`write_stdin`) report only to the model.
 */
import { constants } from "node:os";
import type { ApprovalQuestion, ItemOf } from "@heddle/protocol";
import { absolutePath } from "../calls/call-path.ts";
import type { OpenCommand } from "./process-table.ts";
import type { ProcessExit } from "./process.ts";
import { describeExit, failureOf, type CommandReport } from "./shell-call.ts";
import type { CallContext, OngoingItem, ToolResult } from "../calls/tool.ts";

type CommandItem = ItemOf<"commandExecution">;

/** Never throws, also for folders that will be refused. */
export function commandItem(command: string, workdir: string | undefined, context: CallContext): CommandItem {
  return {
    type: "commandExecution",
    id: context.itemId,
    callId: context.callId,
    command,
    cwd: workdir ?? context.cwd,
    status: "inProgress",
    output: "",
  };
}

export function commandQuestion(command: string, workdir: string | undefined, context: CallContext): ApprovalQuestion {
  const { callId, itemId } = context;
  const cwd = workdir === undefined ? context.cwd : absolutePath(workdir, context.cwd);
  return { kind: "command", callId, itemId, command, cwd };
}

/** The result of the call that started a command, at its end or when its time is up. */
export function commandResult(described: CommandItem, report: CommandReport, command: OpenCommand): ToolResult {
  const started = { ...described, cwd: command.cwd };
  const { exit, failure } = report;
  const output = [{ type: "text" as const, text: report.text }];
  if (exit === undefined) {
    const ongoing = ongoingCommand(started, command);
    return { isError: false, output, item: { ...started, output: report.output }, ongoing };
  }
  const item = endedItem(started, { ...report, exit });
  return { isError: failure !== undefined, output, item, ...(failure === undefined ? {} : { failure }) };
}

function ongoingCommand(started: CommandItem, command: OpenCommand): OngoingItem {
  const processId = String(command.id);
  command.hasOpenItem = true;
  const close = (): Printed => {
    command.hasOpenItem = false;
    const { text, ...rest } = command.snapshot();
    return { output: text, ...rest };
  };
  return {
    processId,
    get isRunning() {
      return command.isRunning;
    },
    ended: command.ended.then((exit) => {
      return endedItem(started, { exit, durationMs: Math.round(exit.durationMs), ...close() });
    }),
    leave() {
      command.listen(undefined);
      return { ...started, ...printed(close()), status: "completed", processId };
    },
  };
}

/** As a shell reports it: 128 and the number of the signal. */
function exitCodeOf({ exitCode, signal }: ProcessExit): { exitCode?: number } {
  if (exitCode !== undefined) return { exitCode };
  const found = Object.entries(constants.signals).find(([name]) => name === signal);
  return found === undefined ? {} : { exitCode: 128 + found[1] };
}

interface Printed {
  readonly output: string;
  readonly truncatedBytes: number;
  readonly blob?: string | undefined;
  readonly blobError?: string | undefined;
}

function printed({ output, truncatedBytes, blob, blobError }: Printed): Partial<CommandItem> & { output: string } {
  return {
    output,
    ...(truncatedBytes > 0 ? { truncatedBytes } : {}),
    ...keptWhole({ blob, blobError }),
  };
}

/** Where the whole output is, or why it is nowhere. */
export function keptWhole({
  blob,
  blobError,
}: Pick<Printed, "blob" | "blobError">): Pick<CommandItem, "outputBlob" | "outputError"> {
  return {
    ...(blob === undefined ? {} : { outputBlob: blob }),
    ...(blobError === undefined ? {} : { outputError: `the whole output was not kept: ${blobError}` }),
  };
}

function endedItem(
  started: CommandItem,
  end: Printed & { readonly exit: ProcessExit; readonly durationMs: number },
): CommandItem {
  const { exit, durationMs } = end;
  const failure = failureOf(exit);
  const isStopped = exit.cause === "aborted" || exit.cause === "killed";
  return {
    ...started,
    status: isStopped ? "interrupted" : failure === undefined ? "completed" : "failed",
    ...printed(end),
    durationMs,
    ...exitCodeOf(exit),
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
    ...(failure === undefined || (exit.cause === "exited" && exit.exitCode !== undefined)
      ? {}
      : { error: describeExit(exit) }),
  };
}
