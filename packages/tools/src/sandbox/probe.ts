/**
 * A quick look at which sandbox this host can give, for `heddle doctor`: real namespaces with a real mount, not a guess
 * from version numbers. Opening a sandbox does not depend on it.
 */
import { HeddleError } from "@heddle/protocol";
import { findBwrap, isolation } from "./bwrap.ts";
import { findHostTool, runHostTool } from "./host-tools.ts";
import { findNamespaceTools } from "./holder-process.ts";

export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A host that needs longer is judged by opening a sandbox instead. */
const PROBE_TIMEOUT_MS = 150;

const UNSHARE = "--user --map-root-user --mount --net --ipc --pid --fork --kill-child --mount-proc".split(" ");

export async function probeSandbox(): Promise<{ namespaces: ProbeResult; bwrap: ProbeResult }> {
  if (process.platform !== "linux") {
    const reason = `there is no kernel sandbox for ${process.platform} yet`;
    return { namespaces: { ok: false, reason }, bwrap: { ok: false, reason } };
  }
  const [namespaces, bwrap] = await Promise.all([attempt(probeNamespaces), attempt(probeBwrap)]);
  return { namespaces, bwrap };
}

async function attempt(probe: () => Promise<string | undefined>): Promise<ProbeResult> {
  try {
    const reason = await probe();
    return reason === undefined ? { ok: true } : { ok: false, reason };
  } catch (error) {
    if (error instanceof HeddleError) return { ok: false, reason: error.message };
    throw error;
  }
}

async function probeNamespaces(): Promise<string | undefined> {
  const tools = findNamespaceTools();
  const mount = [tools.mount, "-n", "-t", "tmpfs", "tmpfs", "/"];
  const { isOk, stderr } = await runHostTool(tools.unshare, [...UNSHARE, "--", ...mount], PROBE_TIMEOUT_MS);
  return isOk ? undefined : stderr.trim();
}

async function probeBwrap(): Promise<string | undefined> {
  const { bwrap, canForbidNesting } = await findBwrap();
  const args = [...isolation("none", canForbidNesting), "--proc", "/proc", "--", findHostTool("true") ?? "true"];
  const { isOk, stderr } = await runHostTool(bwrap, args, PROBE_TIMEOUT_MS);
  return isOk ? undefined : stderr.trim();
}
