/** Checking and changing the text of a configuration. It loads the schema, which reading a file that is known to be good does not. */
export { parseOverrides, parseOwn } from "./check-config.ts";
export { setTomlKey, tomlText, unsetTomlKey, type TomlScalar } from "./toml-edit.ts";
export { splitKey } from "./toml-lines.ts";
export { writeWhole } from "./write-config.ts";
