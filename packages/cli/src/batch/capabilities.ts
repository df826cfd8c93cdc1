/** `--describe-capabilities`: what this version understands, for callers that meet several versions. Starts nothing. */
import { BUILT_IN_PROVIDERS, type ModelFamily, type WireName } from "@heddle/models";
import { ERROR_CODES, EVENT_VERSIONS, EXIT, exitCodeOf, SandboxLevel, SandboxMode } from "@heddle/protocol";
import type { OptionSpec } from "../args.ts";
import { builtInTools } from "./allowed-tools.ts";

const FAMILIES: readonly ModelFamily[] = ["openai", "anthropic", "gemini", "other"];
const WIRES: readonly WireName[] = ["openai-responses", "openai-chat", "anthropic", "gemini", "scripted"];

/** Lines of `--json`: those of codex exec, Heddle's own, then those of a batch run. */
export const LINE_TYPES = [
  "thread.started",
  "turn.started",
  "turn.completed",
  "turn.failed",
  "item.started",
  "item.updated",
  "item.completed",
  "error",
  "heddle.retry",
  "heddle.run.retried",
  "heddle.run.finished",
] as const;

/** What a caller may rely on; a name never changes its meaning. */
const FEATURES = [
  "allow-tool",
  "artifacts",
  "atomic-result",
  "describe-capabilities",
  "ephemeral",
  "fork",
  "idle-timeout",
  "limit-cost",
  "limit-tokens",
  "limit-turns",
  "manifest",
  "output-schema",
  "preflight",
  "resume",
  "result-on-every-ending",
  "retry",
  "review",
  "terminal-line",
  "timeout",
] as const;

export interface CapabilityFacts {
  readonly version: string;
  readonly options: readonly OptionSpec[];
  readonly subcommands: readonly string[];
}

export function capabilities({ version, options, subcommands }: CapabilityFacts): object {
  const flag = ({ name }: OptionSpec): string => `--${name}`;
  return {
    type: "heddle.capabilities",
    version: 1,
    heddle_version: version,
    subcommands: [...subcommands],
    flags: options.map(flag).toSorted(),
    repeatable_flags: options
      .filter(({ isMultiple }) => isMultiple === true)
      .map(flag)
      .toSorted(),
    tools: [...new Set(FAMILIES.flatMap((family) => [...builtInTools(family).values()]))].toSorted(),
    tools_by_family: Object.fromEntries(FAMILIES.map((family) => [family, [...builtInTools(family).keys()]])),
    providers: BUILT_IN_PROVIDERS.map(({ id }) => id),
    wires: WIRES,
    sandbox_modes: SandboxMode.options,
    sandbox_levels: SandboxLevel.options,
    features: Object.fromEntries(FEATURES.map((feature) => [feature, true])),
    exit_codes: EXIT,
    error_codes: Object.fromEntries(ERROR_CODES.map((code) => [code, exitCodeOf(code)])),
    line_types: LINE_TYPES,
    event_types: Object.keys(EVENT_VERSIONS).toSorted(),
    schemas: ["exec", "result"],
  };
}
