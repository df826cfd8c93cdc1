/**
 * Which sandbox this host can give, for `heddle doctor`: opens each as a turn does and runs a command in it. A shorter
 * check could report "works" where a turn is then refused.
 */
import { toHeddleError, type SandboxHolds } from "@heddle/protocol";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findConfiner, FIRST_USED_LANDLOCK, landlockQuestion } from "./confine.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox, type Backend } from "./open.ts";

export type ProbeResult = SandboxFound | { readonly ok: false; readonly reason: string };

export interface SandboxFound {
  readonly ok: true;
  readonly holds: SandboxHolds;
  /** The version of Landlock that restricts writing as a second layer; absent: only mounts do, and named pipes can be written. */
  readonly landlock?: number;
}

/** A loaded machine needs a second. */
const PROBE_TIMEOUT_MS = 20_000;

/** `workspace`: what is mounted there counts too. */
export async function probeSandbox(
  workspace: string = process.cwd(),
): Promise<{ namespaces: ProbeResult; bwrap: ProbeResult }> {
  if (process.platform !== "linux") {
    const reason = `there is no kernel sandbox for ${process.platform} yet`;
    return { namespaces: { ok: false, reason }, bwrap: { ok: false, reason } };
  }
  const failed = (error: unknown): ProbeResult => ({ ok: false, reason: toHeddleError(error).message });
  const [namespaces, bwrap] = await Promise.all([
    tryOut("namespaces", workspace).catch(failed),
    tryOut("bwrap", workspace).catch(failed),
  ]);
  return { namespaces, bwrap };
}

async function tryOut(backend: Backend, workspace: string): Promise<ProbeResult> {
  const question = landlockQuestion(findConfiner());
  await using sandbox = await openSandbox({ workspace, writeRoots: [], masked: [], network: "none" }, { backend });
  const output = new CappedOutput();
  await using command = await startCommand({
    sandbox,
    argv: question ?? [findHostTool("true") ?? "true"],
    cwd: workspace,
    env: {},
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  const { exitCode, cause } = await command.exited;
  await output.close();
  const text = output.snapshot().text.trim();
  if (exitCode !== 0) return { ok: false, reason: text || `a command inside ended with ${exitCode ?? cause}` };
  const landlock = question === undefined ? 0 : Number(text);
  const holds = await sandbox.ready;
  return landlock >= FIRST_USED_LANDLOCK ? { ok: true, holds, landlock } : { ok: true, holds };
}
