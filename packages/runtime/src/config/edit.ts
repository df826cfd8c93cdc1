/** Checking and changing the text of a configuration. It loads the schema, which reading a file that is known to be good does not. */
export { parseOverrides, parseOwn, tomlValue } from "./check-config.ts";
export { isScalar, leavesOf, valueAt } from "./edit-config.ts";
export { keyText, setTomlKey, tomlText, unsetTomlKey, type TomlScalar } from "./toml-edit.ts";
export { isTable, splitKey } from "./toml-lines.ts";
export { writeWhole } from "./edit-config.ts";
