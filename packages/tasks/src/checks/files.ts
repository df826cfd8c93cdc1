/** Checks of files: that they exist, what they contain, how many there are, and whether they have changed. */
import { toText } from "@heddle/tools/raw-path";
import { cannot, failed, passed, type CheckContext, type RunLeaf } from "./check.ts";
import { finds, globOf } from "./globs.ts";
import { testPattern } from "./patterns.ts";
import { listed, listedNames, shown } from "./shown.ts";

/** A regular file; neither a folder nor a link out of the workspace counts. */
export const fileExists: RunLeaf<"file-exists"> = async ({ path, notEmpty }, { files }) => {
  const entry = await files.entry(path);
  if (entry === undefined) return failed(`${path} does not exist`);
  if (entry.kind !== "file")
    return failed(`${path} is ${entry.kind === "directory" ? "a folder" : "something else"}, not a file`);
  if (notEmpty && entry.sizeBytes === 0) return failed(`${path} is empty`);
  return passed(`${path} exists, ${entry.sizeBytes} bytes`);
};

export const fileAbsent: RunLeaf<"file-absent"> = async ({ path }, { files }) => {
  // The hash sees a dangling link, which looking through it does not.
  const exists = (await files.hash(path)) !== undefined || (await files.entry(path)) !== undefined;
  return exists ? failed(`${path} exists`) : passed(`${path} does not exist`);
};

export const contains: RunLeaf<"contains"> = async ({ path, text }, { files }) => {
  const file = await files.read(path);
  if (file === undefined) return failed(`${path} does not exist`, { isMoot: true });
  const { sha256 } = file;
  return file.text.includes(text)
    ? passed(`${path} contains ${shown(text)}`, { sha256 })
    : failed(`${path} does not contain ${shown(text)}`, { sha256 });
};

export const matches: RunLeaf<"matches"> = async ({ path, regex, flags }, { files, signal }) => {
  const file = await files.read(path);
  if (file === undefined) return failed(`${path} does not exist`, { isMoot: true });
  const { sha256 } = file;
  return (await testPattern({ source: regex, flags, text: file.text }, signal))
    ? passed(`${path} matches /${regex}/${flags}`, { sha256 })
    : failed(`${path} does not match /${regex}/${flags}`, { sha256 });
};

const MAX_SHOWN = 20;

/** Links are not counted. */
export const globCount: RunLeaf<"glob-count"> = async ({ glob, min, max }, { files }) => {
  const { entries, isPartial } = await files.find([glob]);
  const matched = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
  const output = [...matched.slice(0, MAX_SHOWN), ...(matched.length > MAX_SHOWN ? ["…"] : [])].join("\n");
  const count = `${glob} matches ${matched.length} files`;
  const isEnough = matched.length >= min;
  if (isPartial && (!isEnough || max !== undefined))
    return cannot(`${count}, but not everything in the workspace could be looked at`, { output });
  if (!isEnough) return failed(`${count}, fewer than ${min}`, { output });
  if (max !== undefined && matched.length > max) return failed(`${count}, more than ${max}`, { output });
  return passed(count, { output });
};

/** Every glob matches a file whose content differs from the beginning, or that is new or removed. */
export const changed: RunLeaf<"changed"> = async ({ paths }, context) => {
  const found = await differences(paths, context);
  const same = paths.filter((_, index) => found.changed[index]?.length === 0);
  const looked = found.changed.flat();
  const output = looked.join("\n");
  return same.length > 0
    ? failed(`nothing has changed since the task began in ${listed(same)}`, { output })
    : passed(`changed: ${listedNames([...new Set(looked)])}`, { output, looked });
};

/** A glob that matches nothing proves nothing. */
export const unchanged: RunLeaf<"unchanged"> = async ({ paths }, context) => {
  const found = await differences(paths, context);
  if (found.empty.length > 0) return cannot(`nothing matches ${listed(found.empty)}, now or when the task began`);
  const files = [...new Set(found.changed.flat())];
  return files.length > 0
    ? failed(`changed since the task began: ${listedNames(files)}`, { output: files.join("\n") })
    : passed(`${listed(paths)}: as it was`);
};

/** By content and kind, never by time. `changed` has a list for each glob, `empty` the globs without a match. */
async function differences(
  patterns: readonly string[],
  { files, room }: Pick<CheckContext, "files" | "room">,
): Promise<{ readonly changed: readonly (readonly string[])[]; readonly empty: readonly string[] }> {
  const known = room.picked
    .filter(({ now, before }) => [now, before].some((entry) => entry !== undefined && entry.kind !== "folder"))
    .filter(({ now, before }) => now?.kind !== before?.kind || now?.sha256 !== before?.sha256)
    .map(({ path }) => toText(path));
  const lists: string[][] = [];
  const empty: string[] = [];
  for (const pattern of patterns) {
    const glob = globOf(pattern);
    const here = known.filter((path) => finds(glob, path));
    lists.push(here.toSorted());
    if (here.length === 0 && (await files.find([pattern])).entries.length === 0) empty.push(pattern);
  }
  return { changed: lists, empty };
}
