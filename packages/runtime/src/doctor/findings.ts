/** What this machine lacks for Heddle, each with the command that fixes it. It changes nothing. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { BUILT_IN_PROVIDERS, listsModels, resolveProvider, type Outgoing, type Provider } from "@heddle/models";
import { isHeddleError, reasonOf, toHeddleError } from "@heddle/protocol";
import { probeSandbox, type SandboxFound } from "@heddle/tools";
import { findOverlay } from "@heddle/tools/room";
import { heddleHome, loadConfig, type ConfigFile } from "../config/index.ts";
import { mcpServersOf, providerConfigs, withLogin } from "../settings/index.ts";
import { holdsText } from "./holds.ts";

export interface Finding {
  readonly name: string;
  /** `absent` is worth knowing and no problem by itself. */
  readonly state: "ok" | "absent" | "problem";
  readonly detail: string;
  readonly fix?: string;
}

export interface Question {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Providers with a key, and those on this machine, are asked. */
  readonly isOnline: boolean;
}

export async function findings({ env, cwd, isOnline }: Question): Promise<readonly Finding[]> {
  return [
    { name: "node", state: "ok", detail: `${process.version} at ${process.execPath}` } as const,
    ...(await programFindings(env)),
    ...(await sandboxFindings(cwd)),
    await homeFinding(heddleHome(env)),
    ...(await configFindings(env, isOnline)),
  ];
}

const SANDBOX_FIX =
  "allow user namespaces (sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000), or install bubblewrap (apt-get install bubblewrap)";

/** One of the two is enough. */
async function sandboxFindings(workspace: string): Promise<readonly Finding[]> {
  const probed = await probeSandbox(workspace);
  const hasOne = probed.namespaces.ok || probed.bwrap.ok;
  const works = probed.namespaces.ok ? probed.namespaces : probed.bwrap;
  const backends = (["namespaces", "bwrap"] as const).map((backend): Finding => {
    const result = probed[backend];
    const name = `sandbox ${backend}`;
    if (result.ok) return { name, state: "ok", detail: `works; ${holdsText(result.holds)}` };
    if (hasOne) return { name, state: "absent", detail: result.reason };
    return { name, state: "problem", detail: result.reason, fix: SANDBOX_FIX };
  });
  return works.ok ? [...backends, ...kernelFindings(works), await roomFinding()] : backends;
}

/** Where the checks of tasks run. */
async function roomFinding(): Promise<Finding> {
  const name = "rooms for checks";
  const found = await findOverlay();
  if (!found.ok) {
    const detail = `are copies of the workspace, and which files a check reads is not known: ${found.reason}`;
    return { name, state: "absent", detail };
  }
  const where = found.upper === "memory" ? "in memory" : "on disk";
  if (found.areReadsKnown) return { name, state: "ok", detail: `layers ${where}; which files a check reads is known` };
  return { name, state: "absent", detail: `layers ${where}; which files a check reads is not known on this host` };
}

/** What holds besides mounts and namespaces; a sandbox without them works, and lets more of the kernel be reached. */
function kernelFindings({ holds, landlock }: SandboxFound): readonly Finding[] {
  const filter = { name: "system call filter" };
  const writing = { name: "landlock" };
  return [
    holds.systemCalls === "filtered"
      ? { ...filter, state: "ok", detail: "loaded for every command" }
      : {
          ...filter,
          state: "absent",
          detail: "commands can make every system call: this host has no program that loads a filter, or no filters",
          fix: "apt-get install perl-base (or python3, or util-linux 2.40 or later)",
        },
    landlock === undefined
      ? {
          ...writing,
          state: "absent",
          detail: "commands can write to named pipes of other programs; it takes Linux 5.19 and perl or python3",
        }
      : { ...writing, state: "ok", detail: `version ${landlock} restricts writing as a second layer` },
  ];
}

async function homeFinding(home: string): Promise<Finding> {
  const name = "home";
  // The nearest folder that exists decides whether the home can be made.
  let folder = home;
  while (folder !== path.dirname(folder) && (await stat(folder).catch(() => undefined)) === undefined) {
    folder = path.dirname(folder);
  }
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch {
    const fix = `chown -R "$(id -u)" ${folder}, or set HEDDLE_HOME to a folder of your own`;
    return { name, state: "problem", detail: `${folder} cannot be written`, fix };
  }
  return { name, state: "ok", detail: folder === home ? home : `${home}, created at the first run` };
}

/** Programs that the agent's own work stands on. */
async function programFindings(env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const folders = (env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const missing: Finding[] = [];
  for (const [name, why] of [
    ["git", "changes are compared and reviewed with it"],
    ["bash", "commands run in it"],
  ] as const) {
    const found = await Promise.all(folders.map((folder) => isProgram(path.join(folder, name))));
    if (!found.includes(true)) {
      missing.push({ name, state: "problem", detail: `not found; ${why}`, fix: `apt-get install ${name}` });
    }
  }
  return missing;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function configFindings(env: NodeJS.ProcessEnv, isOnline: boolean): Promise<readonly Finding[]> {
  try {
    const { config, file } = await loadConfig(env);
    const servers = (await mcpServersOf(config, env)).map(({ name }) => name);
    const detail = file ?? "none; every setting has its default";
    const mcp: readonly Finding[] =
      servers.length === 0 ? [] : [{ name: "mcp servers", state: "ok", detail: servers.join(", ") }];
    return [{ name: "config", state: "ok", detail }, ...mcp, ...(await providerFindings(config, env, isOnline))];
  } catch (error) {
    return [
      { name: "config", state: "problem", detail: toHeddleError(error).message, fix: "edit the line named here" },
    ];
  }
}

async function providerFindings(
  config: ConfigFile,
  env: NodeJS.ProcessEnv,
  isOnline: boolean,
): Promise<readonly Finding[]> {
  const configs = providerConfigs(config, {}, env);
  const withKeys = BUILT_IN_PROVIDERS.filter(({ envKey, baseUrl }) => envKey !== undefined || (isOnline && baseUrl));
  const ids = new Set([...withKeys, ...configs].map(({ id }) => id));
  const findings = await Promise.all(
    [...ids].map(async (id): Promise<Finding> => {
      const name = `provider ${id}`;
      try {
        const provider = resolveProvider(await withLogin(configs, id, env), id, env);
        const { keySource, baseUrl } = provider;
        const detail = keySource === undefined ? `${baseUrl}, no key needed` : `key in ${keySource}`;
        return isOnline && listsModels(provider) ? await askProvider(provider, detail) : { name, state: "ok", detail };
      } catch (error) {
        if (!isHeddleError(error)) throw error;
        return { name, state: "absent", detail: error.message };
      }
    }),
  );
  if (findings.some(({ state }) => state === "ok")) return findings;
  const fix = "export OPENAI_API_KEY=… (or another provider's), or add [model_providers.NAME] to config.toml";
  const detail = isOnline ? "no provider answers" : "no provider has a key";
  return [...findings, { name: "providers", state: "problem", detail, fix }];
}

const ANSWER_MS = 5_000;

/** Every provider lists its models at the same path; any answer shows that it can be reached. */
async function askProvider(provider: Provider, detail: string): Promise<Finding> {
  const name = `provider ${provider.id}`;
  // A model server on this machine is optional; one that was configured is not.
  const isOptional = provider.id === "ollama" || provider.id === "lmstudio";
  const startedAt = performance.now();
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const url = new URL(`${provider.baseUrl.replace(/\/$/, "")}/models`);
    const outgoing: Outgoing = { method: "GET", url, headers: {}, body: "" };
    const login = await provider.credential?.headers(provider.wire, signal, outgoing);
    const headers = { ...login, ...provider.headers(), "anthropic-version": "2023-06-01" };
    const { status } = await fetch(url, { headers, signal });
    const took = `${Math.round(performance.now() - startedAt)} ms`;
    if (status === 401 || status === 403) {
      const fix = `set another key${provider.keySource === undefined ? "" : ` in ${provider.keySource}`}`;
      return { name, state: "problem", detail: `${detail}; the key is refused (HTTP ${status})`, fix };
    }
    return { name, state: "ok", detail: `${detail}; answers in ${took}${status === 200 ? "" : ` (HTTP ${status})`}` };
  } catch (error) {
    const why = `${detail}; does not respond: ${provider.redact(reasonOf(error))}`;
    if (isOptional) return { name, state: "absent", detail: why };
    return { name, state: "problem", detail: why, fix: `check the network and ${provider.baseUrl}` };
  }
}
