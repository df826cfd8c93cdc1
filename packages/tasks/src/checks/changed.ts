/** Every glob has at least one file that is not as it was when the task began: other content, new, or gone. Times say nothing. */
import { failed, passed, type RunLeaf } from "./check.ts";
import { differences } from "./differences.ts";
import { listed, listedNames } from "./shown.ts";

export const changed: RunLeaf<"changed"> = async ({ paths }, context) => {
  const found = await differences(paths, context);
  const same = paths.filter((_, index) => found.changed[index]?.length === 0);
  const looked = found.changed.flat();
  const output = looked.join("\n");
  return same.length > 0
    ? failed(`nothing has changed since the task began in ${listed(same)}`, { output })
    : passed(`changed: ${listedNames([...new Set(looked)])}`, { output, looked });
};
