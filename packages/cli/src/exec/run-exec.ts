/**
 * One run of `heddle exec`: a plan is made and everything refused that can be; then it is carried out. However it ends,
 * one function here turns the end into lines for the caller and an exit code.
 */
import { StartWatch } from "@heddle/agent";
import { EXIT, exitCodeOf, toHeddleError, type HeddleError } from "@heddle/protocol";
import type { ParsedArgs } from "../args.ts";
import type { Batch } from "../batch/batch.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { behind, openScreen, say } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { isForCodex } from "./caller.ts";
import { asCodexExitCode, exitCodeOfTurn } from "./exit-code.ts";
import { makePlan } from "./plan.ts";
import { runPlan, type RunSurface } from "./run-plan.ts";
import { timeLimitMs } from "../stop.ts";

export interface ExecOptions {
  readonly batch?: Batch | undefined;
}

export async function runExec(args: ParsedArgs, context: CommandContext, options: ExecOptions): Promise<number> {
  const { batch } = options;
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const err = batch?.err ?? openScreen(process.stderr);
  using stop = watchForStop(timeLimitMs(args));
  const code = await carryOut(args, context, { out, err, stop, batch });
  return args.has("codex-exit-codes") || isForCodex(context.env) ? asCodexExitCode(code, args) : code;
}

async function carryOut(
  args: ParsedArgs,
  context: CommandContext,
  surface: Omit<RunSurface, "args" | "context" | "watch">,
): Promise<number> {
  const { out, err, stop, batch } = surface;
  const isJson = args.has("json");
  using watch = new StartWatch("read options and configuration", { log: say });
  try {
    await batch?.open(stop);
    const plan = await makePlan(args, context, { err, stop, watch });
    const { threadId, terminal, failure } = await runPlan(plan, { args, context, watch, ...surface });
    batch?.ended(threadId);
    if (failure !== undefined) {
      batch?.failed(failure);
      if (isJson) await out.write(errorLine(failure));
      await err.write(`heddle: ${behind(failure.message)}\n`);
    }
    const code = terminal === undefined ? EXIT.ok : exitCodeOfTurn(terminal, stop);
    return code === EXIT.ok && failure !== undefined ? exitCodeOf(failure.code) : code;
  } catch (error) {
    const failure = toHeddleError(error);
    batch?.failed(failure);
    // A reader of the stream needs no exit code to know that there was no turn.
    if (isJson) await out.write(errorLine(failure) + toLine({ type: "turn.failed", error: errorBody(failure) }));
    // A failure without a code is a defect of Heddle; main shows where it happened.
    if (failure.code === "internal" && stop.exitCode === undefined) throw error;
    await err.write(`heddle: ${behind(failure.message)}\n`);
    return stop.exitCode ?? exitCodeOf(failure.code);
  }
}

function errorLine(failure: HeddleError): string {
  return toLine({ type: "error", ...errorBody(failure) });
}

function errorBody({ message, code }: HeddleError): { readonly message: string; readonly code: string } {
  return { message, code };
}
