/** A regular file is there. A folder in its place, or a link out of the workspace, is not it. */
import { failed, passed, type RunLeaf } from "./check.ts";

export const fileExists: RunLeaf<"file-exists"> = async ({ path, notEmpty }, { files }) => {
  const entry = await files.entry(path);
  if (entry === undefined) return failed(`${path} does not exist`);
  if (entry.kind !== "file") {
    return failed(`${path} is ${entry.kind === "directory" ? "a folder" : "something else"}, not a file`);
  }
  if (notEmpty && entry.sizeBytes === 0) return failed(`${path} is empty`);
  return passed(`${path} exists, ${entry.sizeBytes} bytes`);
};
