/** What this machine gives and who is logged in, for the doors to tell. */
import type { Host } from "@heddle/server";
import type { HostFacts, SandboxFacts } from "@heddle/server/http";
import { probeSandbox } from "@heddle/tools";
import type { ConfigFile } from "../config/schema.ts";

/** A probe starts processes; what it finds does not change from one request to the next. */
const PROBE_KEPT_MS = 60_000;

export function hostFacts(
  { accounts, runners = {}, env }: Host,
  { home, cwd, config }: { readonly home: string; readonly cwd: string; readonly config: ConfigFile },
): HostFacts {
  let probed: Promise<SandboxFacts> | undefined;
  let probedAt = 0;
  return {
    sandbox() {
      if (probed === undefined || performance.now() - probedAt > PROBE_KEPT_MS) {
        probed = probe(config.sandbox_mode !== "danger-full-access" && config.envelope !== "full");
        probedAt = performance.now();
      }
      return probed;
    },
    programs: { runners, env },
    accounts: async () => (await accounts?.())?.list() ?? [],
    async models(provider) {
      const open = await accounts?.();
      if (open === undefined) return [];
      return (await import("./described-models.ts")).describedModels(open, provider, home);
    },
    doctor: async () => (await import("../doctor/findings.ts")).findings({ env, cwd, isOnline: false }),
  };
}

async function probe(isNeeded: boolean): Promise<SandboxFacts> {
  const found = await probeSandbox();
  const backends = (["namespaces", "bwrap"] as const).map((name) => {
    const result = found[name];
    return result.ok ? { name, isUsable: true } : { name, isUsable: false, problem: result.reason };
  });
  const level = found.namespaces.ok ? "namespaces" : found.bwrap.ok ? "bwrap" : "none";
  return { level, backends, isNeeded };
}
