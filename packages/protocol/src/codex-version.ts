/** The version of Codex whose shapes and words Heddle has; clients look for it. */
export const CODEX_VERSION = "0.166.0";
