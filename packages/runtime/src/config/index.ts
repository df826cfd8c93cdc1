export { effectiveConfig, readConfiguration } from "./layers.ts";
export type { ConfigChoices, Configuration, Layers } from "./layers.ts";
export { heddleHome, loadConfig, makeHome, ownConfigFile, readConfigText } from "./read-config.ts";
export { storeAddress, storeAddressOf } from "./store-address.ts";
export type { ConfigFile, McpServerTable } from "./schema.ts";
