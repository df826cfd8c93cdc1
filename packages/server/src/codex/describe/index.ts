export { bundle, jsonFiles } from "./json-files.ts";
export { tsFiles } from "./ts-files.ts";
