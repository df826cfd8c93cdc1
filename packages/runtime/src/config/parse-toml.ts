/** Parses TOML; errors name file and line. */
import { HeddleError } from "@heddle/protocol";
import { parse, TomlError } from "smol-toml";

export function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return tomlIn(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = error.message.includes("redefine")
      ? "this key or table is there already"
      : `this is not TOML from column ${error.column} on: a line is key = value, and text is in quotes`;
    throw new HeddleError("config.invalid", `${file}:${error.line}: ${why}; fix this line`, { cause: error });
  }
}

/** An integer that a number cannot hold exactly is TOML too, and other programs write it: here it is rounded. */
export function tomlIn(text: string): Record<string, unknown> {
  const table = exactToml(text);
  roundIn(table);
  return table;
}

/** As it is written, for comparing. */
export function exactToml(text: string): Record<string, unknown> {
  return parse(text, { integersAsBigInt: "asNeeded" });
}

function roundIn(holder: object): void {
  for (const [key, value] of Object.entries(holder)) {
    if (typeof value === "bigint") Reflect.set(holder, key, Number(value));
    else if (typeof value === "object" && value !== null) roundIn(value);
  }
}
