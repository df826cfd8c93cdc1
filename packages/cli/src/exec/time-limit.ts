/** `--timeout`: how long a run may take. */
import { usage, type ParsedArgs } from "../args.ts";

export function timeLimitMs(args: ParsedArgs): number | undefined {
  const text = args.value("timeout");
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // setTimeout cannot wait longer than 2^31 ms.
  if (Number.isFinite(seconds) && seconds > 0 && seconds * 1000 < 2 ** 31) return seconds * 1000;
  throw usage(`--timeout "${text}" is not a number of seconds above 0, such as --timeout 600`);
}
