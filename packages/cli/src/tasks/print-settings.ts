/** `-v`: what tasks will run with, and what was said about it where. Secrets are never shown. */
import type { SettingKey, SettingSource } from "@heddle/agent/settings";
import { toHeddleError, visibleLine } from "@heddle/protocol";
import type { ResolvedSettings, SettingsSource } from "@heddle/server";
import { loadConfig, type ConfigFile } from "@heddle/runtime/config";
import { say } from "../print/screen.ts";

export interface PrintedSettings {
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly cwd: string;
  readonly config: ConfigFile;
  readonly settings: SettingsSource;
  readonly concurrency: number;
}

const SECRET = /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;
const OURS = /^(?:HEDDLE|OPENLOOM|CODEX|OPENAI|ANTHROPIC|GEMINI|OPENROUTER)_/;

export async function printSettings({ env, home, cwd, config, settings, concurrency }: PrintedSettings): Promise<void> {
  const { file } = await loadConfig(env);
  const shown = await settings
    .explain({ workspace: cwd })
    .then(settingLines, (error: unknown) => [["model", toHeddleError(error).message] as const]);
  const { workspace_roots: roots, min_interval: least = "1m" } = config.tasks ?? {};
  const lines: readonly (readonly [string, string])[] = [
    ["home", home],
    ["config", file ?? "none"],
    // Unless the task says otherwise.
    ...shown,
    ["at a time", String(concurrency)],
    ["folders", roots?.join(", ") ?? "any"],
    ["at most", `every ${least}`],
    ...Object.entries(env)
      .filter(([name, value]) => OURS.test(name) && (value ?? "") !== "")
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([name, value = ""]) => [name, masked(name, value)] as const),
  ];
  for (const [name, value] of lines) say(`${name.padEnd(10)} ${visibleLine(value)}`);
}

const ORIGINS: Readonly<Record<SettingSource, string>> = {
  default: "by default",
  file: "from the file",
  profile: "from the profile",
  override: "from -c",
  flag: "from an option",
  turn: "as in the last turn",
  thread: "set for the thread",
  request: "as asked for",
};

function settingLines({ settings, sources }: ResolvedSettings): readonly (readonly [string, string])[] {
  const { runner, model, provider, effort, sandboxMode, envelope, ceiling, approvalPolicy } = settings;
  const from = (key: SettingKey): string => ORIGINS[sources[key] ?? "default"];
  return [
    ...(runner === undefined ? [] : [["runner", `${runner} (${from("runner")})`] as const]),
    ["model", `${model} of ${provider} (${from("model")})`],
    ...(effort === undefined ? [] : [["effort", `${effort} (${from("effort")})`] as const]),
    envelope === undefined
      ? ["sandbox", `${sandboxMode} (${from("sandboxMode")})`]
      : ["envelope", `${envelope} (${from("envelope")})`],
    ...(ceiling === undefined ? [] : [["ceiling", `${ceiling} (${from("ceiling")})`] as const]),
    ["approvals", `${approvalPolicy} (${from("approvalPolicy")})`],
  ];
}

function masked(name: string, value: string): string {
  if (SECRET.test(name)) return "********";
  // Addresses carry secrets in their user part, their path and their query.
  return value.replaceAll(/(\w+:\/\/)(?:[^\s@/,]*@)?([^\s/?#,]+)[^\s,]*/g, "$1$2/…");
}
