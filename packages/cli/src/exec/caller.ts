/**
 * Who called `exec`, where a caller says so. A library written for Codex does, by Codex's own variable: it is given what
 * Codex gives, no field more, and is not refused what Codex lets pass.
 */
import { HeddleError } from "@heddle/protocol";

const VARIABLE = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

/** Whatever it calls itself: a name that is refused is refused once, by `callerIn`. */
export function isForCodex(env: NodeJS.ProcessEnv): boolean {
  return (env[VARIABLE] ?? "") !== "";
}

/** As it names itself; undefined: it does not. */
export function callerIn(env: NodeJS.ProcessEnv): string | undefined {
  const name = env[VARIABLE] ?? "";
  if (name === "") return undefined;
  if (/^[\x21-\x7e]{1,64}$/.test(name)) return name;
  throw new HeddleError("usage.invalid", `${VARIABLE} must be one word of up to 64 plain characters`);
}

/** It is kept with the thread. */
export function originOf(env: NodeJS.ProcessEnv): string {
  return callerIn(env) ?? "exec";
}
