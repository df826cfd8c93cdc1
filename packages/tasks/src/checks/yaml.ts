/** A place in a YAML file has a value, matches a pattern, or is there at all. */
import type { RunLeaf } from "./check.ts";
import { expectAt } from "./documents.ts";

export const yaml: RunLeaf<"yaml"> = (check, context) => expectAt(check, "yaml", context);
