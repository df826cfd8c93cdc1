/** How many regular files a glob matches. Links are not counted. */
import { cannot, failed, passed, type RunLeaf } from "./check.ts";

const MAX_SHOWN = 20;

export const globCount: RunLeaf<"glob-count"> = async ({ glob, min, max }, { files }) => {
  const { entries, isPartial } = await files.find([glob]);
  const matched = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
  const output = [...matched.slice(0, MAX_SHOWN), ...(matched.length > MAX_SHOWN ? ["…"] : [])].join("\n");
  const count = `${glob} matches ${matched.length} files`;
  const isEnough = matched.length >= min;
  if (isPartial && (!isEnough || max !== undefined)) {
    return cannot(`${count}, but not everything in the workspace could be looked at`, { output });
  }
  if (!isEnough) return failed(`${count}, fewer than ${min}`, { output });
  if (max !== undefined && matched.length > max) return failed(`${count}, more than ${max}`, { output });
  return passed(count, { output });
};
