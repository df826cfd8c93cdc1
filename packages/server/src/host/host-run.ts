/** A program of this machine that answers a question for a client: it may look, not write, and reaches no network. */
import path from "node:path";
import { commandEnvironment } from "@heddle/tools";
import type { Call } from "../rpc/call.ts";
import { HostCommand, type HostResult } from "./host-command.ts";

export interface Question {
  /** Absolute, real. */
  readonly cwd: string;
  readonly argv: readonly string[];
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export async function askProgram(
  { cwd, argv, maxBytes, timeoutMs }: Question,
  { server, connection }: Call,
): Promise<HostResult> {
  const command = new HostCommand({
    connection,
    processId: undefined,
    argv,
    // Git must neither take locks nor ask anybody, and reads no configuration but the repository's.
    env: commandEnvironment(server.host.env, { GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" }),
    takesInput: false,
    hasTerminal: false,
    isStreamed: false,
    capBytes: maxBytes,
    timeoutMs,
    place: async () => ({
      cwd,
      isConfined: true,
      policy: { workspace: cwd, writeRoots: [], masked: [server.home, ...(server.host.masked ?? [])], network: "none" },
      quarantineDir: path.join(server.home, "quarantine", "commands"),
    }),
  });
  const forget = connection.ends.add(command);
  try {
    return await command.done;
  } finally {
    forget();
  }
}
