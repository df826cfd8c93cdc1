/** Taking over what another home has signed. */
export { linesOf, receiveBundle, type ReceivedBundle } from "./evidence/bundle-file.ts";
export { importBundle, type ImportReport } from "./evidence/import.ts";
export { isImport } from "./evidence/import-stream.ts";
