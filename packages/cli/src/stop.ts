/**
 * What may end a run from outside: a signal, or the time limit. The first asks the turn to stop and leaves it a few
 * seconds for its terminal event; a second signal, or the end of those seconds, ends the process at once.
 */
import { writeSync } from "node:fs";
import { clockMs, EXIT, HeddleError } from "@heddle/protocol";
import { endProcess } from "./end-process.ts";
import { usage, type ParsedArgs } from "./args.ts";

const EXIT_BY_SIGNAL = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: 129 } as const;
type StopSignal = keyof typeof EXIT_BY_SIGNAL;
const SIGNALS: readonly StopSignal[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** A turn ends within six seconds of being told to; what takes longer has gone wrong. */
const GRACE_MS = 5_500;
/** A terminal and a launcher may both deliver one keypress. */
const SAME_SIGNAL_MS = 150;

export interface Stop extends Disposable {
  /** Aborts with a HeddleError, `turn.interrupted` or `turn.timeout`. */
  readonly signal: AbortSignal;
  /** The exit code that the stop calls for; undefined while nothing has asked to stop. */
  readonly exitCode: number | undefined;
  /** Asks to stop for a reason of the caller's own, unless something has asked before. */
  end(code: number, reason: HeddleError): void;
}

/** Written through, because nothing runs after it. */
function printLate(graceMs: number): void {
  try {
    writeSync(2, `heddle: not everything ended within ${graceMs / 1000} s; the next start closes what is left open\n`);
  } catch {
    // There is no reader.
  }
}

export function watchForStop(timeoutMs: number | undefined, graceMs: number = GRACE_MS): Stop {
  const control = new AbortController();
  let exitCode: number | undefined;
  let firstAt = 0;
  let grace: NodeJS.Timeout | undefined;

  const stop = (code: number, reason: HeddleError): void => {
    if (exitCode !== undefined) {
      if (clockMs() - firstAt > SAME_SIGNAL_MS) endProcess(code);
      return;
    }
    exitCode = code;
    firstAt = clockMs();
    grace = setTimeout(() => {
      printLate(graceMs);
      endProcess(code);
    }, graceMs);
    control.abort(reason);
  };
  const onSignal = (name: StopSignal): void => {
    stop(EXIT_BY_SIGNAL[name], new HeddleError("turn.interrupted", `interrupted by ${name}`));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  const limit =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          stop(EXIT.timeout, new HeddleError("turn.timeout", `the time limit of ${timeoutMs / 1000} s is over`));
        }, timeoutMs);

  return {
    signal: control.signal,
    get exitCode() {
      return exitCode;
    },
    end(code, reason) {
      if (exitCode === undefined) stop(code, reason);
    },
    [Symbol.dispose]() {
      clearTimeout(limit);
      clearTimeout(grace);
      // Once asked to stop, a late signal still ends the process with the exit code, not by the signal.
      if (exitCode === undefined) for (const name of SIGNALS) process.off(name, onSignal);
    },
  };
}

/** `--timeout`: how long a run may take. */
export function timeLimitMs(args: ParsedArgs): number | undefined {
  const text = args.value("timeout");
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // setTimeout cannot wait longer than 2^31 ms.
  if (Number.isFinite(seconds) && seconds > 0 && seconds * 1000 < 2 ** 31) return seconds * 1000;
  throw usage(`--timeout "${text}" is not a number of seconds above 0, such as --timeout 600`);
}
