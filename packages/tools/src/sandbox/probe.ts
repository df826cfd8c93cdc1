/**
 * Which sandbox this host can give, for `heddle doctor`: each is opened as a turn opens it, and a command is run in it. A
 * shorter look would say "works" where a turn is then refused.
 */
import { toHeddleError, type SandboxHolds } from "@heddle/protocol";
import { CappedOutput } from "../output.ts";
import { startCommand } from "../process.ts";
import { findHostTool } from "./host-tools.ts";
import { openSandbox, type Backend } from "./open.ts";

export type ProbeResult =
  | { readonly ok: true; readonly holds: SandboxHolds }
  | { readonly ok: false; readonly reason: string };

/** A loaded machine needs a second; whoever asks a sick host must not wait for ever. */
const PROBE_TIMEOUT_MS = 20_000;

/** `workspace`: what is mounted there counts too. */
export async function probeSandbox(
  workspace: string = process.cwd(),
): Promise<{ namespaces: ProbeResult; bwrap: ProbeResult }> {
  if (process.platform !== "linux") {
    const reason = `there is no kernel sandbox for ${process.platform} yet`;
    return { namespaces: { ok: false, reason }, bwrap: { ok: false, reason } };
  }
  const [namespaces, bwrap] = await Promise.all([attempt("namespaces", workspace), attempt("bwrap", workspace)]);
  return { namespaces, bwrap };
}

async function attempt(backend: Backend, workspace: string): Promise<ProbeResult> {
  try {
    return await tryOut(backend, workspace);
  } catch (error) {
    return { ok: false, reason: toHeddleError(error).message };
  }
}

async function tryOut(backend: Backend, workspace: string): Promise<ProbeResult> {
  await using sandbox = await openSandbox({ workspace, writeRoots: [], masked: [], network: "none" }, { backend });
  const output = new CappedOutput();
  await using command = await startCommand({
    sandbox,
    argv: [findHostTool("true") ?? "true"],
    cwd: workspace,
    env: {},
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  const { exitCode, cause } = await command.exited;
  if (exitCode === 0) return { ok: true, holds: await sandbox.ready };
  const said = output.snapshot().text.trim();
  return { ok: false, reason: said === "" ? `a command inside ended with ${exitCode ?? cause}` : said };
}
