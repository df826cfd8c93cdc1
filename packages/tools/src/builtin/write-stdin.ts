/**
 * `write_stdin`: sends text to an open command, or only reads its new output. \u0003 interrupts it, \u0004 ends its
 * input.
 */
import { HeddleError, toHeddleError, type Failure, type HopRequest, type ItemOf } from "@heddle/protocol";
import type { OpenCommand } from "../commands/process-table.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { sendInput } from "../commands/send-input.ts";
import { awaitCommand } from "../commands/shell-call.ts";
import { callItem, jsonTool } from "../calls/call-item.ts";
import type { CallContext } from "../calls/tool.ts";
import { z } from "./schema.ts";

const INTERRUPT = "\u0003";
const END_OF_INPUT = "\u0004";
const WRITE_WAIT_MS = 1000;
const POLL_WAIT_MS = 5000;
const MIN_WAIT_MS = 250;
const MAX_WAIT_MS = 300_000;

const NAME = "write_stdin";

const Input = z.object({
  session_id: z.int().check(z.describe("From the call that started the command")),
  chars: z._default(
    z.string().check(z.describe("Text to send; empty only reads, \\u0003 is Ctrl-C, \\u0004 ends the input")),
    "",
  ),
  yield_time_ms: z.optional(z.number().check(z.describe("How long to wait for output"))),
  max_output_tokens: z.optional(z.number().check(z.positive())),
});
type Input = z.infer<typeof Input>;

export const writeStdin = jsonTool<Input>({
  name: NAME,
  description: "Writes to a command that is still running and returns what it has printed since the last look.",
  input: Input,
  effects: ["read", "exec"],
  isReadOnly: isHarmless,
  deadlineMs: (args) => waitMs(args) + 30_000,
  requestedHop(args, { sandbox, state }) {
    const command = state.processes.get(args.session_id);
    if (command === undefined || command.sandbox === sandbox || isHarmless(args)) return undefined;
    return {
      request: wayTo(command.sandbox),
      reason: `it types into ${command.command}, which runs beyond the sandbox`,
      scope: "call",
    };
  },
  describe: stdinItem,
  question: (args, { callId, itemId }) => ({
    kind: "tool",
    callId,
    itemId,
    tool: NAME,
    arguments: shownArguments(args),
  }),
  async run(args, context) {
    const command = context.state.processes.get(args.session_id);
    if (command === undefined) throw new HeddleError("tool.failed", `no command is open as session ${args.session_id}`);
    const text = args.chars.replaceAll(INTERRUPT, "").replaceAll(END_OF_INPUT, "");
    if (text !== "" && !command.hasInput) throw new HeddleError("tool.failed", closedInput(command));
    // An open item of the command shows its output and end to the user; this call reports to the model.
    const isShownElsewhere = command.hasOpenItem;
    // First the output since the last call, then live; nothing is lost, because nothing awaits in between.
    const waited = command.take();
    if (!isShownElsewhere) {
      if (waited.text !== "") context.stream(waited.text);
      command.listen((delta) => context.stream(delta));
    }
    if (args.chars.includes(INTERRUPT)) command.interrupt();
    const problem = text === "" ? undefined : await send(command, text, context.signal);
    if (args.chars.includes(END_OF_INPUT)) command.endInput();
    const report = await awaitCommand(
      command,
      { waitMs: waitMs(args), maxOutputTokens: args.max_output_tokens, waited },
      context,
    );
    if (!isShownElsewhere) command.listen(undefined);
    const isAsked = args.chars.includes(INTERRUPT) && report.state !== "stopped";
    const failure = problem ?? (isAsked ? undefined : report.failure);
    const ownFailure = isShownElsewhere ? problem : failure;
    const item: ItemOf<"toolCall"> = {
      ...stdinItem(args, context),
      status: report.state === "stopped" ? "interrupted" : ownFailure === undefined ? "completed" : "failed",
      output: report.output,
      durationMs: report.durationMs,
      ...(report.truncatedBytes > 0 ? { truncatedBytes: report.truncatedBytes } : {}),
      ...(ownFailure === undefined ? {} : { error: ownFailure.message }),
    };
    const note = problem === undefined ? "" : `${problem.message}\n`;
    const output = [{ type: "text" as const, text: note + report.text }];
    return { isError: failure !== undefined, output, item, ...(failure === undefined ? {} : { failure }) };
  },
});

/** Text can be a command for an open shell; only reading and stopping are harmless. */
function isHarmless({ chars }: Input): boolean {
  return chars === "" || chars === INTERRUPT;
}

/** Permission for one command to leave the sandbox does not cover what is typed into it. */
function wayTo({ level, policy }: Sandbox): HopRequest {
  if (level === "none") return { kind: "outside" };
  const permissions = { read: [], write: [...policy.writeRoots], network: policy.network === "all" };
  return { kind: "wider", permissions };
}

async function send(command: OpenCommand, text: string, signal: AbortSignal): Promise<Failure | undefined> {
  try {
    await sendInput(command, text, signal);
    return undefined;
  } catch (error) {
    const { code, message } = toHeddleError(error, "tool.failed");
    return { code, message };
  }
}

function closedInput(command: OpenCommand): string {
  return `the input of session ${command.id} is closed; start the command again with its input kept open`;
}

function stdinItem(args: Input, context: CallContext): ItemOf<"toolCall"> {
  return callItem(NAME, shownArguments(args), context);
}

function shownArguments({ session_id, chars }: Input): Pick<Input, "session_id" | "chars"> {
  return { session_id, chars };
}

function waitMs(args: Input): number {
  const wanted = args.yield_time_ms ?? (args.chars === "" ? POLL_WAIT_MS : WRITE_WAIT_MS);
  return Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, wanted));
}
