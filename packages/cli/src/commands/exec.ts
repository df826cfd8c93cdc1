/**
 * `heddle exec`: one prompt, one turn. A plan is made and everything refused that can be; then it is carried out. However it
 * ends, one place here turns the end into lines for the caller and an exit code.
 */
import { EXIT, exitCodeOf, isHeddleError, toHeddleError, visibleText, type HeddleError } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Batch } from "../batch/batch.ts";
import { isBatch } from "../batch/flags.ts";
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
  const described = { options: EXEC_OPTIONS, subcommands: EXEC_SUBCOMMANDS };
  if (args.has("describe-capabilities")) {
    const { capabilities } = await import("../batch/capabilities.ts");
    await openOutput(process.stdout).write(toLine(capabilities({ ...described, version: context.version })));
    return EXIT.ok;
  }
  if (args.has("preflight")) {
    using stop = watchForStop(timeoutMs(args.value("timeout")));
    return await (await import("../batch/preflight.ts")).preflight(args, context, stop);
  }
  if (!isBatch(args)) return runExec(args, context);
  const { Batch } = await import("../batch/batch.ts");
  const batch = new Batch(args, context, described);
  return batch.around(() => runExec(args, context, batch));
}

async function runExec(args: ParsedArgs, context: CommandContext, batch?: Batch): Promise<number> {
  const out = openOutput(process.stdout);
  const err = batch?.err ?? openOutput(process.stderr);
  using stop = watchForStop(timeoutMs(args.value("timeout")));
  const code = await carryOut(args, context, { out, err, stop, batch });
  return args.has("codex-exit-codes") ? asCodexExitCode(code, args) : code;
}

interface Surface {
  readonly out: Output;
  readonly err: Output;
  readonly stop: Stop;
  readonly batch: Batch | undefined;
}

async function carryOut(args: ParsedArgs, context: CommandContext, surface: Surface): Promise<number> {
  const { out, err, stop, batch } = surface;
  const isJson = args.has("json");
  try {
    await batch?.open(stop);
    const plan = await makePlan(args, context, surface);
    const { threadId, terminal, failure } = await runPlan(plan, { args, context, ...surface });
    batch?.ended(threadId);
    if (failure !== undefined) {
      batch?.failed(failure);
      if (isJson) await out.write(errorLine(failure));
      await err.write(`heddle: ${visibleText(failure.message)}\n`);
    }
    const code = terminal === undefined ? EXIT.ok : exitCodeOfTurn(terminal, stop);
    return code === EXIT.ok && failure !== undefined ? exitCodeOf(failure.code) : code;
  } catch (error) {
    const failure = toHeddleError(error);
    batch?.failed(failure);
    // A reader of the stream needs no exit code to know that there was no turn.
    if (isJson) await out.write(errorLine(failure) + toLine({ type: "turn.failed", error: told(failure) }));
    // A failure without a code is a defect of Heddle; main shows where it happened.
    if (!isHeddleError(error) && stop.exitCode === undefined) throw error;
    await err.write(`heddle: ${visibleText(failure.message)}\n`);
    return stop.exitCode ?? exitCodeOf(failure.code);
  }
}

function errorLine(failure: HeddleError): string {
  return toLine({ type: "error", ...told(failure) });
}

function told({ message, code }: HeddleError): { readonly message: string; readonly code: string } {
  return { message, code };
}

function timeoutMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // setTimeout cannot wait longer than 2^31 ms.
  if (Number.isFinite(seconds) && seconds > 0 && seconds * 1000 < 2 ** 31) return seconds * 1000;
  throw usage(`--timeout "${text}" is not a number of seconds above 0, such as --timeout 600`);
}
