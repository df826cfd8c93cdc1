/** Nothing that the globs match is other than it was when the task began; nothing new, nothing gone. Nothing at all is no proof. */
import { cannot, failed, passed, type RunLeaf } from "./check.ts";
import { differences } from "./differences.ts";
import { listed, listedNames } from "./shown.ts";

export const unchanged: RunLeaf<"unchanged"> = async ({ paths }, context) => {
  const found = await differences(paths, context);
  if (found.empty.length > 0) return cannot(`nothing matches ${listed(found.empty)}, now or when the task began`);
  const files = [...new Set(found.changed.flat())];
  return files.length > 0
    ? failed(`changed since the task began: ${listedNames(files)}`, { output: files.join("\n") })
    : passed(`${listed(paths)}: as it was`);
};
