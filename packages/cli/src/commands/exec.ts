/**
 * `heddle exec`: one prompt, one turn. A plan is made and everything refused that can be; then it is carried out. However it
 * ends, one place here turns the end into lines for the caller and an exit code.
 */
import { isHeddleError, toHeddleError, visibleText } from "@heddle/protocol";
import { EXIT, exitCodeOf } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { asCodexExitCode, exitCodeOfTurn } from "../exec/exit-code.ts";
import { makePlan } from "../exec/plan.ts";
import { runPlan } from "../exec/run-plan.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput, type Output } from "../print/output.ts";
import { watchForStop, type Stop } from "../stop.ts";
import { EXEC_EXAMPLES, EXEC_OPTIONS, EXEC_SUBCOMMANDS } from "./exec-options.ts";

export const execCommand: Command = {
  usage: [
    "exec [OPTIONS] [PROMPT | -]",
    "exec resume [ID | NAME | --last] [PROMPT | -]",
    "exec fork ID [PROMPT | -]",
    "exec review (--uncommitted | --base BRANCH | --commit SHA | PROMPT)",
  ].join("\n"),
  about:
    "Runs one turn in a folder and prints the final message. Without PROMPT, or with -, the prompt is read from\n" +
    "standard input; with PROMPT, piped input is appended to it. Takes the options of codex exec.",
  subcommands: EXEC_SUBCOMMANDS,
  options: EXEC_OPTIONS,
  examples: EXEC_EXAMPLES,
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openOutput(process.stdout);
  const err = openOutput(process.stderr);
  using stop = watchForStop(timeoutMs(args.value("timeout")));
  const code = await carryOut(args, context, { out, err, stop });
  return args.has("codex-exit-codes") ? asCodexExitCode(code) : code;
}

interface Surface {
  readonly out: Output;
  readonly err: Output;
  readonly stop: Stop;
}

async function carryOut(args: ParsedArgs, context: CommandContext, surface: Surface): Promise<number> {
  const { out, err, stop } = surface;
  try {
    const plan = await makePlan(args, context, surface);
    const { terminal } = await runPlan(plan, { args, context, ...surface });
    return terminal === undefined ? EXIT.ok : exitCodeOfTurn(terminal, stop);
  } catch (error) {
    const failure = toHeddleError(error);
    if (args.has("json")) await out.write(refusalLines(failure));
    // A failure without a code is a defect of Heddle; main shows where it happened.
    if (!isHeddleError(error) && stop.exitCode === undefined) throw error;
    await err.write(`heddle: ${visibleText(failure.message)}\n`);
    return stop.exitCode ?? exitCodeOf(failure.code);
  }
}

/** A reader of the stream needs no exit code to know that there was no turn. */
function refusalLines({ code, message }: { readonly code: string; readonly message: string }): string {
  return toLine({ type: "error", message, code }) + toLine({ type: "turn.failed", error: { message, code } });
}

function timeoutMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // setTimeout cannot wait longer than 2^31 ms.
  if (Number.isFinite(seconds) && seconds > 0 && seconds * 1000 < 2 ** 31) return seconds * 1000;
  throw usage(`--timeout "${text}" is not a number of seconds above 0, such as --timeout 600`);
}
