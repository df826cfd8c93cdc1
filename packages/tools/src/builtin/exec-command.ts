/** `exec_command`: runs a shell command; one that takes longer than the model waits stays open under a number. */
import type { ItemOf } from "@heddle/protocol";
import { byHand, positive } from "../calls/arguments.ts";
import { commandItem, commandQuestion, commandResult } from "../commands/command-item.ts";
import { isKnownReadOnly } from "../commands/known-commands.ts";
import { typedPatch } from "../patch/heredoc.ts";
import { awaitCommand, MAX_COMMAND_BYTES, startShell, workdirOf } from "../commands/shell-call.ts";
import { shellRequest } from "../commands/shell-request.ts";
import { jsonTool } from "../calls/call-item.ts";
import type { CallContext } from "../calls/tool.ts";

const DEFAULT_YIELD_MS = 10_000;
const MIN_YIELD_MS = 250;
const MAX_YIELD_MS = 300_000;

export function checkCommand(text: string): string | undefined {
  if (text === "") return "Too small: expected string to have >=1 characters";
  if (text.includes("\0")) return "must not hold a NUL byte";
  return Buffer.byteLength(text) <= MAX_COMMAND_BYTES
    ? undefined
    : `must not exceed ${MAX_COMMAND_BYTES} bytes; use a file`;
}

/** Other fields are sandbox requests of the model, which policy answers. */
interface Input {
  readonly cmd: string;
  readonly workdir?: string | undefined;
  readonly login?: boolean | undefined;
  readonly tty?: boolean | undefined;
  readonly yield_time_ms?: number | undefined;
  readonly max_output_tokens?: number | undefined;
  readonly timeout_ms?: number | undefined;
  readonly [other: string]: unknown;
}

const { input, parameters } = byHand<Input>({
  cmd: { type: "string", isRequired: true, description: "Shell command to run", check: checkCommand },
  workdir: { type: "string", description: "Folder to run in; default is the workspace" },
  login: { type: "boolean", description: "Use a login shell; default false" },
  tty: { type: "boolean", description: "Keep stdin open for write_stdin; default false, stdin is empty" },
  yield_time_ms: { type: "number", description: "How long to wait for output before returning; default 10000" },
  max_output_tokens: { type: "number", description: "Cut output beyond this; default 8000", check: positive },
  timeout_ms: { type: "number", description: "Kill the command after this; default none", check: positive },
});

export const execCommand = jsonTool<Input>({
  name: "exec_command",
  description:
    "Runs a shell command in the sandbox and returns its output. A command that is still running after yield_time_ms stays open; the result then has a session ID for write_stdin.",
  input,
  parameters,
  effects: ["read", "exec"],
  isReadOnly: (args) => args.login !== true && isKnownReadOnly(args.cmd),
  deadlineMs: (args) => yieldMs(args) + 30_000,
  paths: (args) => workdirOf(args.workdir),
  requestedHop: shellRequest,
  describe: shellItem,
  question: (args, context) => commandQuestion(args.cmd, args.workdir, context),
  redirect(args) {
    const typed = typedPatch(args.cmd);
    if (typed === undefined) return undefined;
    const folders = [args.workdir, typed.workdir].filter((folder) => folder !== undefined);
    return { tool: "apply_patch", input: { patch: typed.patch, folders } };
  },
  async run(args, context) {
    const command = await startShell(
      {
        command: args.cmd,
        isLogin: args.login === true,
        workdir: args.workdir,
        stdin: args.tty === true ? "pipe" : "ignore",
        timeoutMs: args.timeout_ms,
      },
      context,
    );
    const report = await awaitCommand(
      command,
      { waitMs: yieldMs(args), maxOutputTokens: args.max_output_tokens },
      context,
    );
    return commandResult(shellItem(args, context), report, command);
  },
});

function shellItem(args: Input, context: CallContext): ItemOf<"commandExecution"> {
  return { ...commandItem(args.cmd, args.workdir, context), ...(args.login === true ? { isLogin: true } : {}) };
}

function yieldMs(args: Input): number {
  return Math.min(MAX_YIELD_MS, Math.max(MIN_YIELD_MS, args.yield_time_ms ?? DEFAULT_YIELD_MS));
}
