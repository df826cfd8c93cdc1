export { bundle, jsonFiles } from "./json-files.ts";
export { sessionSchema } from "./sessions.ts";
export { tsFiles } from "./ts-files.ts";
