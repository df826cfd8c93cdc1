/** A place in a JSON file has a value, matches a pattern, or is there at all. */
import type { RunLeaf } from "./check.ts";
import { expectAt } from "./documents.ts";

export const json: RunLeaf<"json"> = (check, context) => expectAt(check, "json", context);
