/** Parses TOML; errors name file and line. */
import { HeddleError } from "@heddle/protocol";
import { parse, TomlError } from "smol-toml";

export function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = error.message.includes("redefine")
      ? "this key or table is there already"
      : `this is not TOML from column ${error.column} on: a line is key = value, and text is in quotes`;
    throw new HeddleError("config.invalid", `${file}:${error.line}: ${why}; fix this line`, { cause: error });
  }
}
