/**
 * Who called `exec`, where a caller says so. A library written for Codex does, by Codex's own variable: it is given what
 * Codex gives, no field more, and is not refused what Codex lets pass.
 */
import { callerName } from "@heddle/protocol";

const VARIABLE = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

/** Whatever it calls itself. */
export function isForCodex(env: NodeJS.ProcessEnv): boolean {
  return (env[VARIABLE] ?? "") !== "";
}

/** As it names itself; undefined: it does not, or by nothing that can be told. */
export function callerIn(env: NodeJS.ProcessEnv): string | undefined {
  return callerName(env[VARIABLE]);
}

/** It is kept with the thread. */
export function originOf(env: NodeJS.ProcessEnv): string {
  return callerIn(env) ?? "exec";
}
