/** From the end of a run to the exit code of the process. */
import type { TerminalEvent } from "@heddle/agent";
import { ERROR_CODES, EXIT, exitCodeOf, type ErrorCode } from "@heddle/protocol";
import type { ParsedArgs } from "../args.ts";
import type { Stop } from "../stop.ts";
import { hasSecondPrompt } from "./request.ts";

export function exitCodeOfTurn({ body }: TerminalEvent, stop: Pick<Stop, "exitCode">): number {
  if (body.status === "completed") return EXIT.ok;
  if (body.status === "interrupted" && stop.exitCode !== undefined) return stop.exitCode;
  const code = body.failure?.code;
  return isErrorCode(code) ? exitCodeOf(code) : EXIT.turnFailed;
}

/**
 * What `codex exec` would exit with: 1 for everything that is not success. Words that cannot be understood stay 2: unknown
 * options, which are refused before a run begins, and a second prompt. A process that ends by SIGTERM or SIGHUP keeps the
 * number a shell gives it.
 */
export function asCodexExitCode(code: number, args: ParsedArgs): number {
  if (code === EXIT.usage && hasSecondPrompt(args)) return code;
  return code === EXIT.ok || code === EXIT.terminated || code === 129 ? code : EXIT.turnFailed;
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return ERROR_CODES.some((known) => known === code);
}
