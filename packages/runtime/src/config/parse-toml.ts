/** Parses TOML; errors name file and line. */
import { HeddleError } from "@heddle/protocol";
import { parse, TomlError } from "smol-toml";

export function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [why = "not TOML"] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new HeddleError("config.invalid", `${file}:${error.line}: ${why}; fix this line`, { cause: error });
  }
}
