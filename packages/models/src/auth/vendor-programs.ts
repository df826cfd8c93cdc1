/** Small questions to programs of other makers: their version, whether somebody is logged in. */
export { runChild } from "./child.ts";
