/** For whoever speaks with a program over lines: framing, and the ends of what it prints for people. */
export { HeadTail } from "./head-tail.ts";
export { readLines } from "./lines.ts";
export { isKnownReadOnly } from "./known-commands.ts";
