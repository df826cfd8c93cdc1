/** Instructions for the model and the form of its answers, from the configuration. */
import { INSTRUCTION_KEYS, type SettingsPatch } from "@heddle/agent/settings";
import { HeddleError, type TurnSettings } from "@heddle/protocol";
import { instructionsFileOf, readConfigText } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";

/** Every request carries them. */
const MAX_INSTRUCTIONS_BYTES = 1024 * 1024;

export function instructionsOfConfig(config: ConfigFile): SettingsPatch {
  return {
    baseInstructions: baseInstructionsOf(config),
    developerInstructions: config.developer_instructions,
    verbosity: config.model_verbosity,
    summary: config.model_reasoning_summary,
    serviceTier: config.service_tier,
    personality: config.personality,
    guideNames: config.project_doc_fallback_filenames,
    guideBytes: config.project_doc_max_bytes,
  };
}

/** The text of the file as it is now: the turn keeps it, whatever becomes of the file. */
function baseInstructionsOf(config: ConfigFile): string | undefined {
  const file = instructionsFileOf(config);
  if (file === undefined) return config.instructions;
  const text = readConfigText(file);
  if (text !== undefined && text.trim() !== "") return text;
  const why = text === undefined ? "does not exist" : "is empty";
  throw new HeddleError("config.invalid", `model_instructions_file: ${file} ${why}; fix it or remove the key`);
}

/** What of it a thread keeps from turn to turn. */
export function keptInstructions(values: SettingsPatch): Pick<TurnSettings, (typeof INSTRUCTION_KEYS)[number]> {
  // Codex has two names for one tier.
  const given = values.serviceTier === "fast" ? { ...values, serviceTier: "priority" } : values;
  const kept = Object.fromEntries(
    INSTRUCTION_KEYS.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])),
  );
  const bytes = Buffer.byteLength(Object.values(kept).join(""));
  if (bytes <= MAX_INSTRUCTIONS_BYTES) return kept;
  throw new HeddleError("usage.invalid", `the instructions have ${bytes} bytes, of at most ${MAX_INSTRUCTIONS_BYTES}`);
}
