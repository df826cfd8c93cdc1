export { acpDialect } from "./door.ts";
