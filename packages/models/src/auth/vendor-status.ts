/**
 * Whether the vendors' own programs are there and logged in, by asking the programs. Their files are not opened, what they
 * print is not passed on, and none is waited for longer than four seconds.
 */
import { runChild } from "./child.ts";

export interface VendorProgram {
  readonly id: string;
  readonly program: string;
  /** Exit code 0 means logged in. Absent: it has no such question. */
  readonly statusArgs?: readonly string[];
  readonly loginHint: string;
}

export interface VendorStatus {
  readonly id: string;
  readonly state: "loggedIn" | "loggedOut" | "installed" | "missing" | "noAnswer";
}

const PROBE_MS = 4_000;

export async function vendorStatus(
  { id, program, statusArgs }: VendorProgram,
  env: Readonly<Record<string, string | undefined>>,
  timeoutMs: number = PROBE_MS,
): Promise<VendorStatus> {
  const ended = await runChild(program, statusArgs ?? ["--version"], { env, timeoutMs });
  if (ended.kind === "missing") return { id, state: "missing" };
  if (ended.kind !== "exited") return { id, state: "noAnswer" };
  if (statusArgs === undefined) return { id, state: "installed" };
  return { id, state: ended.code === 0 ? "loggedIn" : "loggedOut" };
}
