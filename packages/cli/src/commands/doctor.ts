/** `heddle doctor`: what this machine lacks for Heddle, each with the command that mends it. It changes nothing. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { BUILT_IN_PROVIDERS, resolveProvider } from "@heddle/models";
import { EXIT, isHeddleError, toHeddleError, visibleText } from "@heddle/protocol";
import { probeSandbox } from "@heddle/tools";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import { providerConfigs } from "../config/settings.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { styleFor, type Style } from "../print/style.ts";

export const doctorCommand: Command = {
  usage: "doctor",
  about:
    "Looks at Node, the sandbox, Heddle's home, the configuration and the providers, and says how to mend what is missing.",
  options: [{ name: "json", help: "One JSON object a finding" }],
  examples: ["heddle doctor", "heddle doctor --json"],
  run,
};

interface Finding {
  readonly name: string;
  /** `absent` is worth knowing and no problem by itself. */
  readonly state: "ok" | "absent" | "problem";
  readonly detail: string;
  readonly fix?: string;
}

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  if (args.positionals.length > 0) throw usage("heddle doctor takes no words, only options");
  const out = openOutput(process.stdout);
  const { env } = context;
  const findings = [
    { name: "node", state: "ok", detail: `${process.version} at ${process.execPath}` } as const,
    ...(await sandboxFindings()),
    await homeFinding(heddleHome(env)),
    ...(await configFindings(env)),
  ];
  const style = styleFor("auto", out.isTerminal, env);
  for (const finding of findings) await out.write(args.has("json") ? toLine(finding) : `${line(finding, style)}\n`);
  return findings.some(({ state }) => state === "problem") ? EXIT.turnFailed : EXIT.ok;
}

function line({ name, state, detail, fix }: Finding, style: Style): string {
  const mark = { ok: style.green("ok     "), absent: style.dim("absent "), problem: style.red("problem") }[state];
  const mend = fix === undefined ? "" : `\n          ${style.bold("mend:")} ${visibleText(fix)}`;
  return `${mark}   ${name.padEnd(22)} ${visibleText(detail)}${mend}`;
}

const SANDBOX_FIX =
  "allow user namespaces (sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000), or install bubblewrap (apt-get install bubblewrap)";

/** One of the two is enough. */
async function sandboxFindings(): Promise<readonly Finding[]> {
  const probed = await probeSandbox();
  const hasOne = probed.namespaces.ok || probed.bwrap.ok;
  return (["namespaces", "bwrap"] as const).map((backend) => {
    const result = probed[backend];
    const name = `sandbox ${backend}`;
    if (result.ok) return { name, state: "ok", detail: "works" };
    if (hasOne) return { name, state: "absent", detail: result.reason };
    return { name, state: "problem", detail: result.reason, fix: SANDBOX_FIX };
  });
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
  return { name, state: "ok", detail: folder === home ? home : `${home}, made at the first run` };
}

async function configFindings(env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const loaded = await loadConfig(env).catch((error: unknown) => toHeddleError(error));
  if (loaded instanceof Error) {
    return [{ name: "config", state: "problem", detail: loaded.message, fix: "edit the line named here" }];
  }
  const config: Finding =
    loaded.file === undefined
      ? { name: "config", state: "ok", detail: "none; every setting has its default" }
      : { name: "config", state: "ok", detail: loaded.file };
  const configs = providerConfigs(loaded.config, {}, env);
  const ids = new Set(
    [...BUILT_IN_PROVIDERS.filter(({ envKey }) => envKey !== undefined), ...configs].map(({ id }) => id),
  );
  const providers = [...ids].map((id): Finding => {
    const name = `provider ${id}`;
    try {
      const { keySource, baseUrl } = resolveProvider(configs, id, env);
      return {
        name,
        state: "ok",
        detail: keySource === undefined ? `${baseUrl}, no key needed` : `key in ${keySource}`,
      };
    } catch (error) {
      if (!isHeddleError(error)) throw error;
      return { name, state: "absent", detail: error.message };
    }
  });
  if (providers.some(({ state }) => state === "ok")) return [config, ...providers];
  const fix = "export OPENAI_API_KEY=… (or another provider's), or add [model_providers.NAME] to config.toml";
  return [config, ...providers, { name: "providers", state: "problem", detail: "no provider has a key", fix }];
}
