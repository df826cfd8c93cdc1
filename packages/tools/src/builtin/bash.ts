/** `bash`: a shell command as most model families know it: one call, one time limit, or in the background. */
import { byHand, positive } from "../calls/arguments.ts";
import { commandItem, commandQuestion, commandResult } from "../commands/command-item.ts";
import { isKnownReadOnly } from "../commands/known-commands.ts";
import { awaitCommand, startShell, workdirOf } from "../commands/shell-call.ts";
import { shellRequest } from "../commands/shell-request.ts";
import { jsonTool } from "../calls/call-item.ts";
import { checkCommand, execCommand } from "./exec-command.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
/** Long enough to see a command fail at once. */
const BACKGROUND_LOOK_MS = 1000;

interface Input {
  readonly command: string;
  readonly workdir?: string | undefined;
  readonly timeout?: number | undefined;
  readonly run_in_background?: boolean | undefined;
  readonly [other: string]: unknown;
}

const { input, parameters } = byHand<Input>({
  command: { type: "string", isRequired: true, check: checkCommand },
  workdir: { type: "string", description: "Folder to run in; default is the workspace" },
  timeout: { type: "number", description: "Milliseconds; default 120000, at most 600000", check: positive },
  run_in_background: { type: "boolean", description: "Return at once with a session ID and keep it running" },
});

export const bash = jsonTool<Input>({
  name: "bash",
  description:
    "Runs a shell command in the sandbox and returns its output. stdin is empty unless it runs in the background.",
  input,
  parameters,
  effects: ["read", "exec"],
  isReadOnly: (args) => isKnownReadOnly(args.command),
  deadlineMs: (args) => timeoutMs(args) + 30_000,
  paths: (args) => workdirOf(args.workdir),
  requestedHop: shellRequest,
  describe: (args, context) => commandItem(args.command, args.workdir, context),
  question: (args, context) => commandQuestion(args.command, args.workdir, context),
  redirect: (args) => execCommand.redirect?.({ cmd: args.command, workdir: args.workdir }),
  async run(args, context) {
    const isBackground = args.run_in_background === true;
    const limitMs = timeoutMs(args);
    const command = await startShell(
      {
        command: args.command,
        isLogin: false,
        workdir: args.workdir,
        stdin: isBackground ? "pipe" : "ignore",
        timeoutMs: isBackground ? args.timeout : limitMs,
      },
      context,
    );
    const report = await awaitCommand(
      command,
      // In the foreground the command's own limit ends the wait; the slack is for its processes to end.
      { waitMs: isBackground ? BACKGROUND_LOOK_MS : limitMs + 20_000, maxOutputTokens: undefined },
      context,
    );
    return commandResult(commandItem(args.command, args.workdir, context), report, command);
  },
});

function timeoutMs(args: Input): number {
  return Math.min(MAX_TIMEOUT_MS, args.timeout ?? DEFAULT_TIMEOUT_MS);
}
